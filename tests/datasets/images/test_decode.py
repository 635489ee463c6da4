"""Decoded images, compared with a computation in NumPy."""

import numpy as np
import pytest
from PIL import ExifTags, Image

from datasets.images.decode import decode
from datasets.images.source import ImageError
from datasets.images.store import open_store
from tests.datasets.images.awkward import draw, encode

SIZES = [(6, 5), (13, 17), (30, 40)]


def weigh(count, size):
    """Weights `(size, count)` of a triangle filter that covers all pixels."""
    scale = count / size
    reach = max(scale, 1.0)
    centers = (np.arange(size) + 0.5) * scale
    places = np.arange(count) + 0.5
    weights = 1 - np.abs(places - centers[:, None]) / reach
    weights = np.maximum(weights, 0)
    return weights / weights.sum(axis=1, keepdims=True)


def compute(colors, size):
    """Gray values of an array `(H, W, 3)` at a size."""
    gray = np.asarray(colors, float) @ [0.299, 0.587, 0.114]
    height, width = size
    return weigh(len(gray), height) @ gray @ weigh(gray.shape[1], width).T


def assert_decoded(content, colors, most=1.5):
    for size, found in zip(SIZES, decode(content, SIZES), strict=True):
        assert found.dtype == np.uint8 and found.shape == size
        assert np.abs(found - compute(colors, size)).max() <= most


def as_colors(content):
    with Image.open(content) as image:
        return np.asarray(image.convert("RGB"))


def test_colors():
    colors = draw()
    assert_decoded(encode(Image.fromarray(colors)), colors)


def test_a_path(tmp_path):
    path = tmp_path / "image.jpg"
    path.write_bytes(encode(Image.fromarray(draw(40, 50)), "JPEG"))
    assert_decoded(path, as_colors(path))


def test_gray_values_and_bits():
    gray = draw(channels=1)
    colors = np.repeat(gray, 3, axis=-1)
    assert_decoded(encode(Image.fromarray(gray[..., 0])), colors)
    assert_decoded(np.ascontiguousarray(gray[..., 0]), colors)
    bits = gray[..., 0] > 128
    assert_decoded(
        encode(Image.fromarray(bits)), np.repeat(255.0 * bits[..., None], 3, -1)
    )


def test_16_bits_are_not_cut_off():
    gray = draw(channels=1)[..., 0].astype(np.uint16) * 257
    assert gray.max() > 255
    assert_decoded(
        encode(Image.fromarray(gray)), np.repeat(gray[..., None] / 257, 3, -1)
    )


@pytest.mark.parametrize("most", [4095, 65535])
def test_portable_gray_maps_of_16_bits(most):
    gray = np.round(draw(channels=1)[..., 0] / 255 * most)
    content = f"P5 17 13 {most}\n".encode() + gray.astype(">u2").tobytes()
    assert_decoded(content, np.repeat(gray[..., None] * (255 / most), 3, -1))


def test_photographs_are_turned_as_the_camera_says():
    colors = draw()
    image = Image.fromarray(colors)
    exif = image.getexif()
    exif[ExifTags.Base.Orientation] = 6
    # 6: the camera was turned so that the right side of the picture is up.
    assert_decoded(encode(image, exif=exif), np.rot90(colors, -1))


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparent_parts_are_black(mode):
    colors, alpha = draw(), draw(channels=1, seed=1)
    image = Image.fromarray(np.concatenate([colors, alpha], axis=-1))
    if mode == "P":
        image = image.convert("RGB").quantize(16)
        seen = np.asarray(image.convert("RGB"))
        clear = np.asarray(image) == 3
        assert clear.any() and not clear.all()
        content = encode(image, transparency=3)
        assert_decoded(content, np.where(clear[..., None], 0, seen))
        return
    image = image.convert(mode)
    seen = np.asarray(image.convert("RGBA")).astype(float)
    assert_decoded(encode(image), seen[..., :3] * seen[..., 3:] / 255, most=2.5)


def test_cmyk():
    image = Image.fromarray(draw(40, 50)).convert("CMYK")
    content = encode(image, "JPEG", quality=95)
    cyan_magenta_yellow = 1 - np.asarray(image)[..., :3] / 255
    black = 1 - np.asarray(image)[..., 3:] / 255
    # JPEG loses a little.
    assert_decoded(content, 255 * cyan_magenta_yellow * black, most=8)


WHOLE = encode(Image.fromarray(draw(40, 50)), "JPEG")
DAMAGED = {
    "a truncated JPEG": (WHOLE[: len(WHOLE) // 2], "(?i)truncated"),
    "a truncated PNG": (encode(Image.fromarray(draw()))[:-60], "."),
    "a text": (b"<html>404</html>", "no known format"),
    "nothing": (b"", "no known format"),
    "floats": (
        encode(Image.fromarray(np.ones((3, 3), np.float32)), "TIFF"),
        "32 bits",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_cannot_be_decoded(name):
    content, message = DAMAGED[name]
    with pytest.raises(ImageError, match=message):
        decode(content, SIZES)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        decode(tmp_path / "none.png", SIZES)


def test_without_pillow(monkeypatch):
    monkeypatch.setattr("datasets.images.decode.Image", None)
    with pytest.raises(ImageError, match="install the extra `images`"):
        open_store(None, SIZES, "", report=print)


def test_too_many_pixels(monkeypatch):
    monkeypatch.setattr("datasets.images.decode.MOST_PIXELS", 100)
    with pytest.raises(ImageError, match="17 x 13 pixels are too many"):
        decode(encode(Image.fromarray(draw())), SIZES)
