import numpy as np

from datasets.images.pixels import lay_out, to_tokens


def test_images_are_laid_out_without_their_padding():
    images = np.random.default_rng(0).integers(1, 256, (3, 45, 44))
    padded = np.pad(to_tokens(images), [(0, 0), (0, 5)])
    np.testing.assert_array_equal(lay_out(padded, (45, 44)), images)
