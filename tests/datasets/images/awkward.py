"""Image files of every kind, and files that are none."""

import io

import numpy as np
from PIL import Image

from datasets.images.source import Item, Source


def draw(height=13, width=17, channels=3, seed=0):
    """A uint8 array whose neighboring pixels are alike."""
    row, column, channel = np.indices((height, width, channels))
    waves = np.sin(seed + row / 3 + column / 4 + 2 * channel)
    return (128 + 120 * waves).astype(np.uint8)


def encode(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def make_source(contents, name="made", **fields):
    """A source of encoded images, whose classes are 0, 1, 0, 1, ..."""

    def read():
        for number, content in enumerate(contents):
            yield Item(f"image {number}", content, number % 2)

    fields = {"identity": name, "count": len(contents), **fields}
    return Source(name, read, **fields)


def encode_gray(number):
    """An encoded image, all of whose pixels are `number`."""
    return encode(Image.fromarray(np.full((5, 4), number, np.uint8)))
