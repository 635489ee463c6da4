"""Encoded images of any kind as gray values of a given size."""

import io

import numpy as np

from datasets.files import only_files
from datasets.images.source import ImageError

try:
    from PIL import Image, ImageOps
except ImportError:
    Image = None

MOST_PIXELS = 2**26
"""Largest number of pixels of an image, so that it fits in memory."""


def check_installed():
    """Raises `ImageError` without the library that decodes images."""
    if Image is None:
        raise ImageError(
            "images are decoded by Pillow: install the extra `images`."
        )


def decode(content, sizes):
    """Decodes an image, as gray values at several sizes.

    Colors become their luma (ITU-R BT.601), transparent parts become black, and
    photographs are turned as their camera says (EXIF).
    The whole image is resized, whatever its proportions, by a triangle filter
    that covers all pixels: no aliasing.

    Args:
        content: As in `Item`.
        sizes: List of pairs of int, heights and widths.

    Returns:
        List of uint8 arrays `(height, width)`.

    Raises:
        ImageError: If the image cannot be decoded; the message says why.
        OSError: If the file cannot be read.
    """
    if isinstance(content, np.ndarray):
        gray = Image.fromarray(content)
    else:
        try:
            with _open(content) as source, Image.open(source) as image:
                gray = _to_gray(image)
        # Damaged files raise errors of many classes.
        except Exception as error:
            # The operating system's errors have numbers, Pillow's have none.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ImageError(_describe(error)) from None
    return [
        np.asarray(gray.resize((width, height), Image.Resampling.BILINEAR))
        for height, width in sizes
    ]


def _open(content):
    """Opens the bytes or the path of an image."""
    if isinstance(content, bytes):
        return io.BytesIO(content)
    return open(content, "rb", opener=only_files)


def _to_gray(image):
    if image.width * image.height > MOST_PIXELS:
        raise ImageError(f"{image.width} x {image.height} pixels are too many")
    ImageOps.exif_transpose(image, in_place=True)
    # Pillow gives PGM files of 16 bits as 32 bits, up to 65535.
    wide = image.mode.startswith("I;16") or image.format == "PPM"
    if image.mode in ("I", "F") and not wide:
        raise ImageError("its pixels have 32 bits")
    if wide and image.mode.startswith("I"):
        # Pillow would cut off what is above 255.
        values = np.asarray(image).astype(np.uint32)
        return Image.fromarray(((values + 128) // 257).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        black = Image.new("RGBA", image.size, (0, 0, 0, 255))
        image = Image.alpha_composite(black, image)
    if image.mode != "L":
        # Not every mode converts to gray values directly.
        image = image.convert("RGB").convert("L")
    image.load()
    return image.copy()


def _describe(error):
    if isinstance(error, Image.UnidentifiedImageError):
        return "no known format"
    return str(error) or type(error).__name__
