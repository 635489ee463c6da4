import numpy as np
import pytest

from keras_lengen.layers import CAPE, AugmentedPositions, SinusoidalEncoding

EMBEDDINGS = np.full((3, 4, 8), 2, "float32")


def test_it_is_sines_of_centred_positions_in_the_layout_of_the_paper():
    encoded = CAPE(normalize=True, layout="interleaved")(EMBEDDINGS)
    expected = [
        [
            np.sin((j - 1.5) * 10000 ** (-2 * (c // 2) / 8) + c % 2 * np.pi / 2)
            for c in range(8)
        ]
        for j in range(4)
    ]
    np.testing.assert_allclose(encoded, 2 + np.array([expected] * 3), atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_it_is_the_encoding_with_its_sampler(training):
    form = CAPE(seed=3, max_local_shift=0.25, max_wavelength=100)
    sampler = AugmentedPositions(
        max_global_shift=5,
        max_local_shift=0.25,
        max_global_scale=1.03,
        normalize=False,
        seed=3,
    )
    plain = SinusoidalEncoding(max_wavelength=100, sampler=sampler)
    encoded = np.asarray(form(EMBEDDINGS, training=training))
    np.testing.assert_array_equal(encoded, plain(EMBEDDINGS, training=training))
    drawn = not np.allclose(encoded[0], encoded[1], atol=1e-3)
    assert drawn == training
