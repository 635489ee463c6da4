import numpy as np
import pytest

from keras_lengen.layers import SinusoidalEncoding


def sinusoid(position, width, layout, max_wavelength=10000):
    """One row, by the definition."""
    angles = position / max_wavelength ** (np.arange(0, width, 2) / width)
    pairs = np.stack([np.sin(angles), np.cos(angles)])
    return np.ravel(pairs if layout == "concatenated" else pairs.T)


def encoded(positions, width, **kwargs):
    embeddings = np.full((1, len(positions), width), 5, "float32")
    positions = np.array(positions)
    return SinusoidalEncoding(**kwargs)(embeddings, positions=positions)[0] - 5


@pytest.mark.parametrize("layout", ["concatenated", "interleaved"])
@pytest.mark.parametrize("max_wavelength", [100, 10000])
def test_rows_follow_the_definition(layout, max_wavelength):
    positions = [0, 1, 2.5, 40, 500, 99_999]
    np.testing.assert_allclose(
        encoded(positions, 16, layout=layout, max_wavelength=max_wavelength),
        [sinusoid(p, 16, layout, max_wavelength) for p in positions],
        atol=1e-4,
    )


def test_an_odd_width_raises():
    with pytest.raises(ValueError, match=r"embeddings is 5: .* even"):
        encoded([0], 5)
