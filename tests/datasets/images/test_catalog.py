import sys

import pytest
import tensorflow_datasets as tfds
from PIL import Image

from datasets.images import IMAGES
from datasets.images.catalog import open_catalog
from datasets.images.source import ImageError
from tests.datasets.images.awkward import draw, encode


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
            names = {"image": str(path), "file_name": path.name}
            yield seed, {**names, "label": seed}

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


def test_imagenet(prepared):
    found = IMAGES["imagenet2012"].open(prepared)
    assert found["train"].name == "imagenet2012-train"
    assert (found["train"].count, found["test"].count) == (5, 2)
    first, again = (list(found["train"].read()) for _ in range(2))
    assert first == again
    items = [*first, *found["test"].read()]
    assert {(item.content, item.label) for item in items} == {
        (encode_jpeg(seed), seed) for seed in range(7)
    }


def test_data_that_are_not_prepared(tmp_path):
    message = (
        rf"imagenette/320px-v2 is not prepared in {tmp_path}: run `tfds build "
        rf"imagenette/320px-v2 --data_dir={tmp_path}`\. Or begin with --datas"
    )
    with pytest.raises(ImageError, match=message):
        IMAGES["imagenette"].open(str(tmp_path))
    message = f"get ILS.* into {tmp_path}/downloads/manual, and run `tfds build"
    with pytest.raises(ImageError, match=message):
        IMAGES["imagenet2012"].open(str(tmp_path))


def test_no_tensorflow_datasets(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ImageError, match="install the extra `tfds`"):
        open_catalog("imagenette")
