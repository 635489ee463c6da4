import pathlib

import numpy as np
import tensorflow_datasets as tfds
from etils import epath

from datasets.text import enwik8
from datasets.tfds.enwik8 import enwik8_dataset_builder as module

FOLDER = epath.Path(module.__file__).parent
DUMMY = FOLDER / "dummy_data"


class TestBuilder(tfds.testing.DatasetBuilderTestCase):
    """The test that TensorFlow Datasets has for builders."""

    DATASET_CLASS = module.Builder
    # The dummy file has 2000 bytes, fewer than a block.
    SPLITS = {"train": 1, "validation": 1, "test": 1}

    def test_session(self, *args, **kwargs):
        return super().test_session(*args, **kwargs)

    # A context of TensorFlow's, not a test in spite of its name.
    test_session.__test__ = False


def test_blocks_are_the_file_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 300)
    asked = []
    monkeypatch.setattr(
        tfds.download.DownloadManager,
        "download_and_extract",
        lambda manager, url: asked.append(url) or DUMMY,
    )
    builder = module.Builder(data_dir=tmp_path)
    builder.download_and_prepare()
    assert asked == [enwik8.URL]
    content, found = (DUMMY / "enwik8").read_bytes(), b""
    for split, sizes in [
        ("train", [300] * 6),
        ("validation", [100]),
        ("test", [100]),
    ]:
        examples = list(builder.as_dataset(split=split).as_numpy_iterator())
        assert [len(example["text"]) for example in examples] == sizes
        for example in examples:
            assert example["start"] == len(found)
            assert example["text"].dtype == np.uint8
            found += example["text"].tobytes()
    assert found == content


def test_the_file_is_the_one_of_the_other_reader():
    line = pathlib.Path(FOLDER / "checksums.tsv").read_text()
    url, size, digest, name = line.rstrip("\n").split("\t")
    assert module.URL == url == enwik8.URL
    assert int(size) == enwik8.ZIP_BYTES
    assert len(bytes.fromhex(digest)) == 32
    assert name == "enwik8.zip"
    assert module.SPLITS == enwik8.SPLITS


def test_all_blocks_of_the_whole_file_have_one_size():
    for borders in module.SPLITS.values():
        for border in borders:
            assert round(border * enwik8.BYTES) % module.BLOCK == 0
