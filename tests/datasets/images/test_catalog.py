import sys

import pytest
import tensorflow_datasets as tfds

from datasets.images import IMAGES
from datasets.images.catalog import open_catalog
from datasets.images.source import ImageError
from tests.datasets.images.awkward import encode_gray


def test_imagenet(tmp_path, monkeypatch):
    builder = tfds.builder("imagenet2012", data_dir=tmp_path)

    def generate(labels):
        for label in labels:
            path = tmp_path / f"{label}.JPEG"
            path.write_bytes(encode_gray(label))
            names = {"image": str(path), "file_name": path.name}
            yield label, {**names, "label": label}

    splits = {"train": generate(range(5)), "validation": generate(range(5, 7))}
    monkeypatch.setattr(type(builder), "_split_generators", lambda *_: splits)
    builder.download_and_prepare()
    found = IMAGES["imagenet2012"].open(str(tmp_path))
    assert found["train"].name == "imagenet2012-train"
    assert (found["train"].count, found["test"].count) == (5, 2)
    items = [*found["train"].read(), *found["test"].read()]
    assert {(item.content, item.label) for item in items} == {
        (encode_gray(label), label) for label in range(7)
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
