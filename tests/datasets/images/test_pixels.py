import numpy as np
import pytest

from datasets.images.pixels import BLACK, ROW_END, lay_out, to_tokens


@pytest.mark.parametrize("delimiter", [BLACK, ROW_END])
def test_rows_end_with_a_delimiter(delimiter):
    size = (45, 44)
    images = np.random.default_rng(0).integers(1, 256, (3, *size))
    tokens = to_tokens(images, delimiter).numpy()
    assert tokens.shape == (3, 2025) and tokens.dtype == np.int32
    wanted = [
        [int(value) for row in image for value in (*row, delimiter)]
        for image in images
    ]
    assert tokens.tolist() == wanted
    padded = np.pad(tokens, [(0, 0), (0, 5)])
    np.testing.assert_array_equal(lay_out(padded, size), images)
    assert (BLACK, ROW_END) == (0, 256)
