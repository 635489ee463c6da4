"""The encodings whose far distances are not those of `RoPE`."""

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.layers import STRING, ReRoPE, RoPE, SelfExtend
from tests.covering import cover
from tests.keras_lengen.layers.encodings.table import (
    WIDTH,
    encode,
    random_inputs,
)
from tests.keras_lengen.layers.encodings.turns import rotated
from tests.keras_lengen.models import small

TOKENS = 12
ORDINAL = np.arange(TOKENS)

# The distance between two positions, by the papers.
DISTANCES = {
    SelfExtend: lambda i, j: (
        i - j
        if i - j < 5
        else math.floor(i / 3) + 5 - 5 // 3 - math.floor(j / 3)
    ),
    ReRoPE: lambda i, j: min(i - j, 4),
    STRING: lambda i, j: i - j if i - j < 6 else i - j - 6 + 2,
}
ARGUMENTS = {
    SelfExtend: {"group_size": 3, "window": 5},
    ReRoPE: {"window": 4},
    STRING: {"original_length": 15, "shift_fraction": 0.4, "window": 2},
}


def make(cls, **changes):
    return cls(**{**ARGUMENTS[cls], **changes})


def find_scores(cls, query, key, positions, layout="interleaved", width=WIDTH):
    """Scores of every pair, each rotated by itself: `(B, H, T, T)`."""
    tokens = range(query.shape[1])
    scores = np.zeros((len(query), query.shape[2], len(tokens), len(tokens)))
    for (example, head), _ in np.ndenumerate(query[:, 0, :, 0]):
        for i, j in itertools.product(tokens, tokens):
            distance = DISTANCES[cls](positions[i], positions[j])
            turned = rotated(query[example, i, head], distance, layout, width)
            product = np.dot(turned, key[example, j, head])
            scores[example, head, i, j] = product / math.sqrt(WIDTH)
    return scores


@pytest.mark.parametrize(
    ("cls", "positions", "layout", "width"),
    cover(
        list(DISTANCES),
        [
            ORDINAL,
            np.array([0, 1, 5, 6, 9, 10, 11, 12, 18, 30, 31, 47]),
            ORDINAL * 1.5 - 3,
            # As samplers of tokens give them.
            np.array([0, 4, 3, 2, 1, 0, 9, 8, 7, 6, 5, 9]),
        ],
        ["interleaved", "halves"],
        [WIDTH, WIDTH // 2],
    ),
)
def test_every_pair_has_the_distance_of_the_paper(
    cls, positions, layout, width
):
    query, key = random_inputs("rotation", TOKENS)
    encoding = make(cls, layout=layout, rotary_fraction=width / WIDTH)
    np.testing.assert_allclose(
        encode(encoding, [query, key], positions),
        find_scores(cls, query, key, positions, layout, width),
        atol=2e-5,
    )


@pytest.mark.parametrize("cls", DISTANCES)
def test_short_sequences_are_those_of_rope(cls):
    model, plain = (small.decoder(each) for each in (make(cls), RoPE()))
    small.with_random_weights(model)
    plain.set_weights(model.get_weights())
    ids = small.token_ids(tokens=make(cls).far_distance)
    np.testing.assert_array_equal(model(ids), plain(ids))
    longer = small.token_ids(tokens=TOKENS)
    difference = np.abs(np.asarray(model(longer)) - plain(longer))
    assert difference[:, : ids.shape[1]].max() < 1e-6
    assert difference.max() > 1e-3


@pytest.mark.parametrize("jit_compile", [False, True])
def test_groups_begin_at_exact_multiples(jit_compile):
    # 1 / 49, rounded to float32, times 49 is less than 1.
    encoding = SelfExtend(group_size=49, window=49)
    positions = np.arange(0, 2**22, 7)
    groups = tf.function(
        lambda positions: encoding.find_far_positions(positions, positions),
        jit_compile=jit_compile,
    )
    query, key = groups(tf.constant(positions, "float32"))
    np.testing.assert_array_equal(key, positions // 49)
    np.testing.assert_array_equal(query, positions // 49 + 48)


@pytest.mark.parametrize(
    ("encoding", "trained", "longest"),
    [
        (SelfExtend(group_size=4, window=8), 20, 4 * (20 - 8) + 8),
        (ReRoPE(window=19), 20, None),
        (STRING(original_length=20, window=3), 20, 20 + 6 - 3),
    ],
    ids=["SelfExtend", "ReRoPE", "STRING"],
)
def test_far_distances_stay_in_the_trained_range(encoding, trained, longest):
    def find_largest(tokens):
        places = ops.arange(tokens, dtype="float32")
        query, key = encoding.find_far_positions(places, places)
        far = tokens - 1 - np.arange(tokens) >= encoding.far_distance
        return np.max((query[-1] - np.asarray(key))[far])

    assert find_largest(longest or 10_000) == trained - 1
    if longest:
        assert find_largest(longest + 4) >= trained


def test_the_window_of_string_follows_from_the_length():
    for length, far, window in (384, 128, 64), (3000, 1000, 128), (2, 1, 1):
        encoding = STRING(original_length=length)
        assert encoding.far_distance == far
        query, _ = encoding.find_far_positions(ops.zeros(1), ops.zeros(1))
        assert query[0] == window - far
    # 0.29 * 100 is 28.999999999999996.
    assert STRING(original_length=100, shift_fraction=0.29).far_distance == 29
    message = "window=7 must be at most 6, .* rounded down"
    with pytest.raises(ValueError, match=message):
        make(STRING, window=7)
