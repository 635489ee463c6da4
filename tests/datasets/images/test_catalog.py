import sys

import pytest
import tensorflow_datasets as tfds
from PIL import Image

from datasets.images import IMAGES
from datasets.images.catalog import open_catalog
from datasets.images.source import ImageError
from datasets.images.store import open_store
from tests.datasets.images.awkward import draw, encode
from tests.datasets.images.test_decode import as_colors, compute


def encode_jpeg(seed):
    return encode(Image.fromarray(draw(40, 50, seed=seed)), "JPEG")


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """ImageNet with a few made images, as TensorFlow Datasets prepares it."""
    builder = tfds.builder("imagenet2012", data_dir=tmp_path)

    def generate(first, count):
        for seed in range(first, first + count):
            path = tmp_path / f"{seed}.JPEG"
            path.write_bytes(encode_jpeg(seed))
            yield (
                seed,
                {
                    "image": str(path),
                    "label": seed,
                    "file_name": path.name,
                },
            )

    monkeypatch.setattr(
        type(builder),
        "_split_generators",
        lambda self, manager: {
            "train": generate(0, 5),
            "validation": generate(5, 2),
        },
    )
    builder.download_and_prepare()
    return str(tmp_path)


def test_imagenet(prepared, tmp_path):
    found = IMAGES["imagenet2012"].open(prepared)
    assert found["train"].name == "imagenet2012-train"
    assert (found["train"].count, found["test"].count) == (5, 2)
    first, again = (list(found["train"].read()) for _ in range(2))
    assert first == again
    items = [*first, *found["test"].read()]
    assert {(item.content, item.label) for item in items} == {
        (encode_jpeg(seed), seed) for seed in range(7)
    }
    store = open_store(
        found["test"], [(22, 22)], tmp_path / "cache", report=[].append
    )
    for image, label in zip(store.images[22, 22], store.labels, strict=True):
        colors = as_colors(tmp_path / f"{label}.JPEG")
        assert abs(image - compute(colors, (22, 22))).max() <= 1.5


@pytest.mark.parametrize(
    ("dataset", "name", "first"),
    [
        (
            "imagenet2012",
            "imagenet2012",
            "get ILS.* into {root}/downloads/manual, and ",
        ),
        ("imagenet_resized", "imagenet_resized/64x64", ""),
        ("imagenette", "imagenette/320px-v2", ""),
    ],
)
def test_data_that_are_not_prepared(tmp_path, dataset, name, first):
    message = (
        rf"{name} is not prepared in {tmp_path}: "
        rf"{first.format(root=tmp_path)}run `tfds build {name} "
        rf"--data_dir={tmp_path}`\. Or begin with --dataset=digits"
    )
    with pytest.raises(ImageError, match=message):
        IMAGES[dataset].open(str(tmp_path))


def test_no_tensorflow_datasets(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ImageError, match="install the extra `tfds`"):
        open_catalog("imagenette")
