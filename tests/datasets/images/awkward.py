"""Image files of every kind, and files that are none."""

import io

import numpy as np
from PIL import Image

from datasets.images.source import Item, Source


def draw(height=13, width=17, channels=3, seed=0):
    """A random uint8 array whose neighboring pixels are alike."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (4, 4, channels), np.uint8)
    scaled = [
        Image.fromarray(coarse[..., n]).resize((width, height))
        for n in range(channels)
    ]
    return np.stack([np.asarray(channel) for channel in scaled], axis=-1)


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


def encode_gray(number, size=(5, 4)):
    """An encoded image, all of whose pixels are `number`."""
    return encode(Image.fromarray(np.full(size, number, np.uint8)))
