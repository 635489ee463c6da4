import numpy as np
from keras import ops

from keras_lengen.layers import StickBreakingAttention
from tests.keras_lengen.layers.attention.oracle import break_sticks

SCORES = [
    [0.3, -0.2, 0.5, 1],
    [1, 0.2, -1, 0.4],
    [-0.5, 2, 0.1, 0.3],
    [0.7, -1.2, 0.6, -0.4],
]


def weigh(scores, **arguments):
    """The weights of scores `(T, T)`."""
    layer = StickBreakingAttention(1, 4, **arguments)
    tokens = len(scores)
    layer.build((1, tokens, 4), (1, tokens, 4))
    scores = np.asarray(scores, "float32")[None, None]
    found = layer._compute_weights(
        ops.convert_to_tensor(scores), None, ops.arange(tokens, dtype="int32")
    )
    return np.asarray(found)[0, 0]


def test_published_weights():
    expected = [
        [1, 0, 0, 0],
        [0.731059, 0.268941, 0, 0],
        [0.045004, 0.880797, 0.074199, 0],
        [0.181962, 0.082022, 0.645656, 0.09036],
    ]
    np.testing.assert_allclose(weigh(SCORES), expected, atol=1e-5)
    inclusive = [0.108939, 0.049105, 0.386546, 0.401312 + 0.054097]
    np.testing.assert_allclose(
        weigh(SCORES, attend_current=True)[3], inclusive, atol=1e-5
    )


def test_extreme_scores_of_a_long_sequence_lose_no_precision():
    generator = np.random.default_rng(0)
    scores = generator.normal(-3, 3, size=(400, 400))
    # Some early keys take everything: sums that begin with them are so large
    # that float32 would lose the others' part.
    certain = generator.choice([-1e6, 1e6], size=(400, 200))
    scores[:, :200] = np.where(
        generator.random((400, 200)) < 0.02, certain, scores[:, :200]
    )
    expected = break_sticks(
        scores[None, None], np.tri(400, dtype=bool), np.arange(400)
    )
    found = weigh(scores)
    np.testing.assert_allclose(found, expected[0, 0], atol=1e-5)
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-4)
