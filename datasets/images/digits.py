"""The handwritten digits that scikit-learn ships: every machine has them."""

import functools

import numpy as np

from datasets.images.source import ImageError, Item, Source

CLASSES = 10
TESTED = 360
"""Number of images for testing."""


def open_digits(data_dir=""):
    """Opens 1,797 images of 8 x 8 pixels.

    Returns:
        Dict from `"train"` and `"test"` to their `Source`.

    Raises:
        ImageError: If scikit-learn is not installed.

    Reference: Alpaydin and Kaynak, 1998: Optical recognition of handwritten
    digits, the test set. https://doi.org/10.24432/C50P49
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImageError(
            "--dataset=digits comes with scikit-learn: install the extra "
            "`images`."
        ) from None
    found = load_digits()
    # From 0 to 16.
    pixels = np.round(found.images * (255 / 16)).astype(np.uint8)
    # In their own order, some digits are rare in some parts. The sequence of
    # this old generator never changes.
    numbers = np.random.RandomState(0).permutation(len(pixels))
    return {
        split: Source(
            f"digits-{split}",
            functools.partial(_read, pixels, found.target, of_split),
            identity="digits",
            count=len(of_split),
            in_memory=True,
        )
        for split, of_split in (
            ("train", numbers[TESTED:]),
            ("test", numbers[:TESTED]),
        )
    }


def _read(pixels, labels, numbers):
    for number in numbers.tolist():
        name = f"digit {number}"
        yield Item(name, pixels[number], int(labels[number]))
