"""What PowerKERPLE and LogKERPLE have in common."""

import keras
import numpy as np
import pytest

from keras_lengen.layers import CoupledPositions, LogKERPLE, PowerKERPLE
from keras_lengen.layers.encodings.kerple import Clip
from tests.keras_lengen.models.small import added_parameters

BOTH = pytest.mark.parametrize("cls", [PowerKERPLE, LogKERPLE])
QUERY = np.ones((1, 4, 1, 4), "float32")


def built(cls, heads=1):
    encoding = cls()
    encoding.build((None, None, heads, 4))
    return encoding


@BOTH
def test_weights_start_uniform_in_their_range(cls):
    encoding = built(cls, heads=4000)
    for weight, top in ((encoding.a, 1), (encoding.p, 2)):
        weight = np.asarray(weight)
        assert weight.min() == np.float32(0.01)
        assert 0.99 * top < weight.max() < top
        assert abs(weight.mean() - top / 2) < 0.03 * top


@pytest.mark.parametrize(
    ("cls", "highest_p"), [(PowerKERPLE, 2), (LogKERPLE, 101)]
)
def test_steps_of_training_leave_weights_in_their_range(cls, highest_p):
    encoding = built(cls, heads=3)
    for weight in encoding.weights:
        weight.assign(np.ones(3))
    optimizer = keras.optimizers.SGD(1.0)
    gradient = keras.ops.convert_to_tensor([100.0, 0.25, -100.0])
    optimizer.apply([gradient, gradient], encoding.trainable_variables)
    np.testing.assert_allclose(encoding.a, [0.01, 0.75, 101])
    np.testing.assert_allclose(encoding.p, [0.01, 0.75, highest_p])


@pytest.mark.parametrize("highest", [None, 2.0])
def test_a_range_is_saved_with_its_limits(highest):
    config = keras.constraints.serialize(Clip(lowest=0.01, highest=highest))
    clip = keras.constraints.deserialize(config)
    weight = np.array([-1, 1, 3], "float32")
    np.testing.assert_allclose(clip(weight), [0.01, 1, highest or 3])


@BOTH
@pytest.mark.parametrize(
    ("asymmetry", "causal", "distances", "sampler"),
    [
        (0, False, [5, 3, 0, 6], None),
        (0.5, False, [4.5, 2.5, 0, 6], None),
        (4, False, [1, 0, 0, 6], None),
        (0.5, True, [5, 3, 0, 6], None),
        # Visible keys may have larger positions.
        (
            0.5,
            True,
            [4.5, 2.5, 0, 6],
            CoupledPositions(items=[1], end_of_prompt=2),
        ),
    ],
)
def test_past_keys_are_nearer_unless_causal(
    cls, asymmetry, causal, distances, sampler
):
    encoding = cls(asymmetry=asymmetry, sampler=sampler)
    bias = encoding(QUERY, positions=np.array([0, 2, 5, 11]), causal=causal)
    # The same distances ahead of a token at 0, where no key is past.
    expected = encoding(
        QUERY[:, :1],
        QUERY,
        positions=np.array([0]),
        key_positions=np.array(distances),
    )
    np.testing.assert_allclose(bias[0, 0, 2], expected[0, 0, 0], rtol=1e-6)


@BOTH
@pytest.mark.parametrize(("share_layers", "copies"), [(True, 1), (False, 3)])
def test_layers_share_the_weights_or_own_them(cls, share_layers, copies):
    encoding = cls(share_layers=share_layers)
    assert added_parameters(encoding, num_heads=4, num_layers=3) == 8 * copies
