"""Samplers that read token ids, alone and in models."""

import numpy as np
import pytest

from keras_lengen.layers import (
    DAPE,
    ENCODINGS,
    TOKEN_SAMPLERS,
    AbacusPositions,
    RoPE,
    T5Bias,
)
from keras_lengen.layers.encodings.randomized import FixedSampler
from keras_lengen.layers.positions.placing import sample_positions
from tests.covering import cover
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions.table import TOKEN_ROWS
from tests.keras_lengen.models.small import decoder, eagerly
from tests.refusals import refuses

CHARACTERS = dict(zip("0123456789+=$_", range(14), strict=True))


def ids_of(*texts):
    return np.array([[CHARACTERS[each] for each in text] for text in texts])


def make(name, **changes):
    return TOKEN_SAMPLERS[name](**{**TOKEN_ROWS[name].arguments, **changes})


def coupled(**changes):
    return make("CoupledPositions", **{"max_position": None, **changes})


def positions(sampler, *texts, **kwargs):
    return np.asarray(sampler(ids_of(*texts), **kwargs)).tolist()


def test_published_examples():
    abacus = make("AbacusPositions", max_shift=7)
    expected = [1, 2, 3, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    assert positions(abacus, "321+7654=8795") == [expected]
    rows = {
        tuple(positions(abacus, "321+7654=8795", training=True)[0])
        for _ in range(200)
    }
    assert rows == {
        tuple(place and place + shift for place in expected)
        for shift in range(7)
    }
    # A number begins at one of 100 positions.
    numbers = ids_of(*["1"] * 5000)
    sampler = AbacusPositions(digits=range(10), resample="example", seed=0)
    begins = np.unique(sampler(numbers, training=True))
    assert begins.tolist() == list(range(1, 101))
    expected = [0, 4, 3, 2, 1, 4, 3, 2, 1, 2, 3, 4, 5, 0]
    assert positions(coupled(), "$653+049=2070$") == [expected]
    three = [0, 4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1, 2, 3, 4, 5, 0]
    assert positions(coupled(), "$012+345+006=3630$") == [three]
    assert positions(coupled(order="ascending"), "$123=123$") == [
        [0, 2, 3, 4, 1, 2, 3, 4, 0]
    ]


@pytest.mark.product
@pytest.mark.parametrize("resample", ["example", "batch"])
def test_starts_fill_the_table(resample):
    sampler = coupled(max_position=9, resample=resample, seed=2)
    texts = ["$12+34=640", "$7+8=51___"]
    plain = np.array(positions(sampler, *texts, training=False))
    starts = []
    for _ in range(100):
        drawn = np.array(positions(sampler, *texts, training=True))
        steps = drawn - plain
        assert (steps[plain == 0] == 0).all()
        for row, own in zip(steps, plain, strict=True):
            assert len(set(row[own > 0])) == 1
        starts.append([row[1] for row in steps])
    first, second = map(set, zip(*starts, strict=True))
    # The longest runs have 3 and 2 digits, so the starts end at 5 and 6.
    assert first == set(range(5))
    assert second == (set(range(6)) if resample == "example" else first)


@pytest.mark.parametrize("name", TOKEN_SAMPLERS)
def test_padding_has_position_zero_and_changes_nothing(name):
    sampler = make(name)
    whole = positions(sampler, "$12+34=46")[0]
    assert positions(
        sampler, "$12+34=46123", "123412341234", lengths=np.array([9, 0])
    ) == [[*whole, 0, 0, 0], [0] * 12]
    encoding = RoPE(sampler=sampler)
    ids = ids_of("123$12+34=46", "$12123+34=46")
    mask = np.ones((2, 12), bool)
    mask[0, :3] = mask[1, 3:6] = False
    sampled = np.asarray(sample_positions(encoding.sampler, ids, mask=mask))
    for row, real in zip(sampled, mask, strict=True):
        assert row[real].tolist() == whole


@refuses(
    ({"items": [1, 1]}, "items has an id twice"),
    ({"items": [-1]}, "items must be .* a token id; got -1"),
    ({"separators": [3]}, "id 3 has two meanings"),
)
def test_wrong_arguments_raise(changes):
    assert coupled(items=[2**31 - 1]).items == (2**31 - 1,)
    coupled(**changes)


REFUSED = {
    "CoPE": "has no use in CoPE",
    "SelectiveRoPE": "has no use in SelectiveRoPE",
    "XPos": "earlier tokens larger positions",
    **{
        name: "brings its own sampler"
        for name, cls in ENCODINGS.items()
        if issubclass(cls, FixedSampler)
    },
}
ADAPTED = "DAPE of T5Bias"
TAKING = [*(name for name in ENCODINGS if name not in REFUSED), ADAPTED]


def with_sampler(encoding, sampler):
    if encoding == ADAPTED:
        return DAPE(encoding=T5Bias(), sampler=sampler)
    return encodings.make(encoding, sampler=sampler)


@pytest.mark.parametrize("encoding", REFUSED)
def test_encodings_that_refuse_them(encoding):
    for name in TOKEN_SAMPLERS:
        with pytest.raises(ValueError, match=REFUSED[encoding]):
            with_sampler(encoding, make(name))


PROMPTS, WIDTH = ["$12+345=", "$1+2=", "$7+12=4"], 9
"""Of unequal lengths, one of which begins its answer."""


@pytest.mark.parametrize(
    ("name", "encoding", "side"),
    [
        pytest.param(
            *(name, encoding, side),
            marks=[pytest.mark.product] * (encoding != "LearnedEncoding"),
        )
        for encoding, (name, side) in zip(
            TAKING,
            cover(list(TOKEN_SAMPLERS), ["right", "left"]) * 99,
            strict=False,
        )
    ],
)
def test_generation_is_the_full_pass(name, encoding, side):
    model = decoder(
        with_sampler(encoding, make(name)),
        vocabulary_size=14,
        output_size=14,
        num_layers=2,
    )
    pad = str.ljust if side == "right" else str.rjust
    padded = ids_of(*(pad(text, WIDTH, "_") for text in PROMPTS))
    mask = padded != CHARACTERS["_"]
    # Only digits, which is what new tokens count as.
    model.head.bias.assign([0.0] * 10 + [-1e3] * 4)
    with eagerly():
        tokens, logits = model.generate(
            {"token_ids": padded, "padding_mask": mask}, 5, return_logits=True
        )
    assert (tokens < 10).all()
    for text, own, expected in zip(PROMPTS, tokens, logits, strict=True):
        whole = np.concatenate([ids_of(text)[0], own])[None]
        full = np.asarray(model(whole))[0, len(text) - 1 : -1]
        np.testing.assert_allclose(expected, full, atol=1e-4)
