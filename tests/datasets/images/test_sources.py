"""Every source, from its files to tokens, compared with Pillow."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from datasets.images import IMAGES, open_stores
from datasets.images.batches import evaluation_batch
from datasets.indexed import shuffled_index
from tests.datasets.images.awkward import draw, encode
from tests.datasets.images.test_catalog import prepared  # noqa: F401
from tests.datasets.images.test_tfrecords import write

SIZES = [(22, 22), (45, 44)]
COLORS = Image.fromarray(draw(60, 80))
GRAY = draw(60, 80, channels=1)[..., 0]
TRANSPARENT = COLORS.copy()
TRANSPARENT.putalpha(Image.fromarray(GRAY))
AWKWARD = {
    "colors.jpg": encode(COLORS, "JPEG"),
    "print.jpg": encode(COLORS.convert("CMYK"), "JPEG"),
    "transparent.png": encode(TRANSPARENT),
    "palette.gif": encode(COLORS.convert("P"), "GIF"),
    "bits.tif": encode(COLORS.convert("1"), "TIFF"),
    "deep.png": encode(Image.fromarray(GRAY.astype(np.uint16) * 257)),
    "wide.bmp": encode(Image.fromarray(draw(3, 200)), "BMP"),
    "pixel.webp": encode(COLORS.resize((1, 1)), "WEBP", lossless=True),
}


def compute_tokens(content, size):
    """The tokens of an encoded image, by Pillow."""
    file = content if not isinstance(content, bytes) else io.BytesIO(content)
    with Image.open(file) as image:
        image.load()
    if image.mode == "RGBA":
        black = Image.new("RGB", image.size)
        black.paste(image, mask=image.getchannel("A"))
        image = black
    gray = image.convert("RGB").convert("L")
    if image.mode == "I;16":
        gray = Image.fromarray(GRAY)
    height, width = size
    pixels = gray.resize((width, height), Image.Resampling.BILINEAR)
    rows = np.pad(np.asarray(pixels, int), ((0, 0), (0, 1)))
    return rows.reshape(-1)


@pytest.fixture
def folder(tmp_path):
    for split in ("train", "val"):
        for number, (name, content) in enumerate(AWKWARD.items()):
            path = tmp_path / split / "ab"[number % 2] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return str(tmp_path)


@pytest.fixture
def tfrecords(tmp_path):
    contents = list(AWKWARD.values())
    write(tmp_path / "train-00000-of-00002", contents[:5])
    write(tmp_path / "train-00001-of-00002", contents[5:], first=6)
    write(tmp_path / "validation-00000-of-00001", contents[::-1])
    return str(tmp_path)


@pytest.mark.parametrize(
    ("dataset", "place"),
    [
        ("folder", "folder"),
        ("tfrecords", "tfrecords"),
        ("imagenet2012", "prepared"),
    ],
)
def test_tokens(dataset, place, tmp_path, request):
    sources = IMAGES[dataset].open(request.getfixturevalue(place))
    sizes = dict.fromkeys(sources, SIZES)
    stores = open_stores(
        sources, sizes, tmp_path / "cache", classes=1000, report=print
    )
    for split, store in stores.items():
        items = list(sources[split].read())
        count = len(items)
        assert count == len(store) >= 2
        order = shuffled_index(0, tf.range(count, dtype=tf.int64), count)
        items = [items[number] for number in order]
        for size, tokens in zip(SIZES, (506, 2025), strict=True):
            batch = evaluation_batch(
                store,
                index=tf.constant(0),
                batch_size=count,
                padded_length=tokens,
                size=tf.constant(size),
            )
            assert batch["token_ids"].shape == (count, tokens)
            assert batch["targets"].numpy().tolist() == [
                item.label for item in items
            ]
            wanted = [compute_tokens(item.content, size) for item in items]
            np.testing.assert_allclose(batch["token_ids"], wanted, atol=1)
