import numpy as np
import pytest

from keras_lengen.layers import SHAPE, ShiftedPositions, SinusoidalEncoding

EMBEDDINGS = np.zeros((3, 4, 8), "float32")


def test_it_is_sines_and_cosines_of_shifted_positions():
    encoded = SHAPE(max_shift=7, evaluation="max", layout="interleaved")(
        EMBEDDINGS
    )
    expected = [
        [
            (np.sin, np.cos)[feature % 2](position / 10 ** (feature // 2))
            for feature in range(8)
        ]
        for position in range(7, 11)
    ]
    np.testing.assert_allclose(encoded, [expected] * 3, atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_it_is_the_encoding_with_its_sampler(training):
    form = SHAPE(seed=3, evaluation="random", max_wavelength=100)
    sampler = ShiftedPositions(max_shift=500, seed=3, evaluation="random")
    plain = SinusoidalEncoding(max_wavelength=100, sampler=sampler)
    encoded = np.asarray(form(EMBEDDINGS, training=training))
    np.testing.assert_array_equal(encoded, plain(EMBEDDINGS, training=training))
    assert not np.allclose(encoded[0], encoded[1], atol=1e-3)
