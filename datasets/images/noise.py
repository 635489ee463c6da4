"""Random images, to try a machine without data."""

import functools

import numpy as np

from datasets.images.source import Item, Source

CLASSES = 1000
COUNTS = {"train": 4096, "test": 512}
SIZE = 64


def open_noise(data_dir=""):
    """Opens images whose pixels and classes are random.

    Returns:
        Dict from `"train"` and `"test"` to their `Source`.
    """
    return {
        split: Source(
            f"noise-{split}",
            functools.partial(_read, seed, count),
            identity="noise",
            count=count,
            in_memory=True,
        )
        for seed, (split, count) in enumerate(COUNTS.items())
    }


def _read(seed, count):
    rng = np.random.default_rng(seed)
    for number in range(count):
        pixels = rng.integers(0, 256, (SIZE, SIZE), np.uint8)
        yield Item(f"image {number}", pixels, int(rng.integers(CLASSES)))
