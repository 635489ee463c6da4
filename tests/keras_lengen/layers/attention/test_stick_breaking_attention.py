import keras
import numpy as np
import pytest
from keras import ops
from scipy.special import expit

from keras_lengen.layers import ALiBi, StickBreakingAttention
from keras_lengen.models import TransformerDecoder, TransformerEncoder
from tests.keras_lengen.layers.arguments import assert_config_round_trip
from tests.keras_lengen.models.small import (
    assert_chunks_change_nothing,
    assert_generation_is_the_full_pass,
)

STATES = np.random.default_rng(0).normal(size=(2, 7, 12)).astype("float32")
SCORES = [
    [0.3, -0.2, 0.5, 1],
    [1, 0.2, -1, 0.4],
    [-0.5, 2, 0.1, 0.3],
    [0.7, -1.2, 0.6, -0.4],
]


def weights_of(scores, mask=None, **arguments):
    layer = StickBreakingAttention(1, 4, **arguments)
    tokens = len(scores)
    layer.build((1, tokens, 4), (1, tokens, 4))
    scores = np.asarray(scores, "float32")[None, None]
    found = layer._compute_weights(
        ops.convert_to_tensor(scores), mask, ops.arange(tokens, dtype="int32")
    )
    return np.asarray(found)[0, 0]


def break_sticks(scores, allowed, *, attend_current=False):
    """Weights of one query after the other, from its place to the left."""
    tokens = len(scores)
    weights = np.zeros((tokens, tokens))
    for i in range(tokens):
        left = 1.0
        for j in range(i if attend_current else i - 1, -1, -1):
            if allowed[i, j]:
                share = expit(scores[i, j])
                weights[i, j] += left * share
                left *= 1 - share
        weights[i, i] += left
    return weights


def test_published_weights():
    expected = [
        [1, 0, 0, 0],
        [0.731059, 0.268941, 0, 0],
        [0.045004, 0.880797, 0.074199, 0],
        [0.181962, 0.082022, 0.645656, 0.09036],
    ]
    np.testing.assert_allclose(weights_of(SCORES), expected, atol=1e-5)
    inclusive = [0.108939, 0.049105, 0.386546, 0.401312 + 0.054097]
    np.testing.assert_allclose(
        weights_of(SCORES, attend_current=True)[3], inclusive, atol=1e-5
    )


@pytest.mark.parametrize("attend_current", [True, False])
@pytest.mark.parametrize("masked", [False, True])
def test_output_by_the_definition(attend_current, masked):
    layer = StickBreakingAttention(
        3,
        4,
        attend_current=attend_current,
        use_bias=False,
        encoding=ALiBi(),
    )
    allowed, arguments = np.tri(7, dtype=bool), {"use_causal_mask": True}
    if masked:
        generator = np.random.default_rng(1)
        arguments["attention_mask"] = generator.random((7, 7)) < 0.6
        allowed &= arguments["attention_mask"]
    output, weights = layer(
        STATES, STATES, return_attention_scores=True, **arguments
    )

    def heads(dense):
        return (STATES @ dense.kernel.numpy()).reshape(2, 7, 3, 4)

    query, key, value = map(
        heads, (layer.query_dense, layer.key_dense, layer.value_dense)
    )
    bias = np.asarray(ALiBi()(query, causal=True))
    scores = np.einsum("bihd,bjhd->bhij", query, key) / 2 + bias
    rows = np.array(
        [
            [
                break_sticks(head, allowed, attend_current=attend_current)
                for head in example
            ]
            for example in scores
        ]
    )
    np.testing.assert_allclose(weights, rows, atol=1e-5)
    expected = np.einsum("bhij,bjhd->bihd", rows, value).reshape(2, 7, 12)
    expected = expected @ layer.output_dense.kernel.numpy()
    np.testing.assert_allclose(output, expected, atol=1e-4)


def test_extreme_scores_of_a_long_sequence_lose_no_precision():
    generator = np.random.default_rng(0)
    scores = generator.normal(-3, 3, size=(600, 600))
    # Some early keys take everything: sums that begin with them are so large
    # that float32 would lose the others' part.
    certain = generator.choice([-1e6, 1e6], size=(600, 200))
    scores[:, :200] = np.where(
        generator.random((600, 200)) < 0.02, certain, scores[:, :200]
    )
    expected = break_sticks(scores, np.tri(600, dtype=bool))
    found = weights_of(scores)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-4)


@pytest.mark.product
def test_generation_and_chunks_are_the_full_pass():
    keras.utils.set_random_seed(0)
    model = TransformerDecoder(
        vocabulary_size=9,
        output_size=9,
        num_layers=2,
        num_heads=2,
        model_dim=16,
        attention=StickBreakingAttention,
    )
    ids = np.random.default_rng(0).integers(0, 9, (2, 5))
    assert_generation_is_the_full_pass(model, ids)
    whole = np.random.default_rng(1).integers(0, 9, (2, 9))
    assert_chunks_change_nothing(model, whole)


def test_it_is_causal():
    layer = StickBreakingAttention(2, 4)
    with pytest.raises(
        ValueError, match="StickBreakingAttention is for causal"
    ):
        layer(STATES, STATES)
    with pytest.raises(
        ValueError, match="StickBreakingAttention is for causal"
    ):
        TransformerEncoder(
            vocabulary_size=3,
            output_size=3,
            num_layers=1,
            num_heads=2,
            model_dim=8,
            attention=StickBreakingAttention,
        )


def test_config_rebuilds_it():
    assert_config_round_trip(StickBreakingAttention(2, 4, attend_current=True))
