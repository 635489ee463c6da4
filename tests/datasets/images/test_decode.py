"""Decoded images, compared with a computation in NumPy."""

import numpy as np
import pytest
from PIL import ExifTags, Image

from datasets.images.decode import decode
from datasets.images.source import ImageError
from datasets.images.store import open_store
from tests.datasets.images.awkward import draw, encode

SIZES = [(6, 5), (13, 17), (30, 40)]
COLORS = draw()
GRAY = draw(channels=1)
WHOLE = encode(Image.fromarray(draw(40, 50)), "JPEG")


def weigh(count, size):
    """Weights `(size, count)` of a triangle filter that covers all pixels."""
    scale = count / size
    reach = max(scale, 1.0)
    centers = (np.arange(size) + 0.5) * scale
    places = np.arange(count) + 0.5
    weights = np.maximum(1 - np.abs(places - centers[:, None]) / reach, 0)
    return weights / weights.sum(axis=1, keepdims=True)


def compute(colors, size):
    """Gray values of an array `(H, W, 3)` or `(H, W, 1)` at a size."""
    colors = np.broadcast_to(colors, (*colors.shape[:2], 3))
    gray = np.asarray(colors, float) @ [0.299, 0.587, 0.114]
    height, width = size
    return weigh(len(gray), height) @ gray @ weigh(gray.shape[1], width).T


def portable_gray_map():
    values = np.round(GRAY / 255 * 4095)
    content = b"P5 17 13 4095\n" + values.astype(">u2").tobytes()
    return content, values * (255 / 4095)


def turned():
    image = Image.fromarray(COLORS)
    exif = image.getexif()
    # The camera was turned so that the right side of the picture is up.
    exif[ExifTags.Base.Orientation] = 6
    return encode(image, exif=exif), np.rot90(COLORS, -1)


def transparent():
    alpha = draw(channels=1, seed=1)
    image = Image.fromarray(np.concatenate([COLORS, alpha], axis=-1))
    return encode(image), COLORS * (alpha / 255), 2.5


def inks():
    image = Image.fromarray(draw(40, 50)).convert("CMYK")
    left = 1 - np.asarray(image) / 255
    # JPEG loses a little.
    content = encode(image, "JPEG", quality=95)
    return content, 255 * left[..., :3] * left[..., 3:], 8


KINDS = {
    "colors": (encode(Image.fromarray(COLORS)), COLORS),
    "pixels": (np.ascontiguousarray(GRAY[..., 0]), GRAY),
    "bits": (encode(Image.fromarray(GRAY[..., 0] > 128)), 255.0 * (GRAY > 128)),
    "16 bits": (encode(Image.fromarray(GRAY[..., 0] * np.uint16(257))), GRAY),
    "a map of 12 bits": portable_gray_map(),
    "a turned photograph": turned(),
    "transparent colors": transparent(),
    "inks": inks(),
}


@pytest.mark.parametrize("name", KINDS)
def test_images_of_every_kind(name):
    content, colors, most = (*KINDS[name], 1.5)[:3]
    for size, found in zip(SIZES, decode(content, SIZES), strict=True):
        assert found.dtype == np.uint8 and found.shape == size
        assert np.abs(found - compute(colors, size)).max() <= most


def test_what_cannot_be_decoded():
    for content, message in (
        (WHOLE[: len(WHOLE) // 2], "(?i)truncated"),
        (b"<html>404</html>", "no known format"),
        (encode(Image.fromarray(np.ones((3, 3), np.float32)), "TIFF"), "32 b"),
        (encode(Image.new("1", (8192, 8193))), "8192 x 8193 pixels are too m"),
    ):
        with pytest.raises(ImageError, match=message):
            decode(content, SIZES)


def test_without_pillow(monkeypatch):
    monkeypatch.setattr("datasets.images.decode.Image", None)
    with pytest.raises(ImageError, match="install the extra `images`"):
        open_store(None, SIZES, "", report=print)
