import gzip

import pytest
import tensorflow as tf

from datasets.images.source import ImageError
from datasets.images.tfrecords import open_tfrecords

NAMES = ("image/encoded", "image/class/label")


def write(path, images, first=1, names=NAMES):
    with tf.io.TFRecordWriter(str(path)) as file:
        for label, image in enumerate(images, first):
            values = (
                tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            )
            features = dict(zip(names, values, strict=True))
            example = tf.train.Example(
                features=tf.train.Features(feature=features)
            )
            file.write(example.SerializeToString())


def items(source):
    return [(item.content, item.label) for item in source.read()]


def test_shards_in_order(tmp_path):
    write(tmp_path / "train-00001-of-00002", [b"c"], first=3)
    write(tmp_path / "train-00000-of-00002", [b"a", b"b"])
    # Names and features of TensorFlow Datasets.
    path = tmp_path / "birds-test.tfrecord-00000-of-00001"
    write(path, [b"d", b"e"], first=0, names=("image", "label"))
    found = open_tfrecords(str(tmp_path))
    assert items(found["train"]) == [(b"a", 0), (b"b", 1), (b"c", 2)]
    assert items(found["test"]) == [(b"d", 0), (b"e", 1)]
    assert found["train"].identity != found["test"].identity


def test_damaged_shards(tmp_path):
    for name in ("train-0", "val-0"):
        write(tmp_path / name, [b"a" * 50, b"b" * 50])
    path = tmp_path / "train-0"
    content = path.read_bytes()
    for damaged, message in (
        (content.replace(b"b", b"c"), "train-0 is damaged .*: replace it"),
        (gzip.compress(content), "train-0 is compressed: decompress "),
    ):
        path.write_bytes(damaged)
        with pytest.raises(ImageError, match=message):
            items(open_tfrecords(tmp_path)["train"])


def test_records_of_another_form(tmp_path):
    write(tmp_path / "test-0", [b"a"])
    write(tmp_path / "train-0", [b"a"], names=("picture", "label"))
    with pytest.raises(ImageError, match="0 has the features label, picture: "):
        items(open_tfrecords(tmp_path)["train"])
    with tf.io.TFRecordWriter(str(tmp_path / "train-0")) as file:
        file.write(b"\xff\xff")
    with pytest.raises(ImageError, match=r"record 0 is no tf\.train.Example"):
        items(open_tfrecords(tmp_path)["train"])


def test_shards_of_no_split_and_of_both(tmp_path):
    def refuse(message, path):
        with pytest.raises(ImageError, match=message):
            open_tfrecords(path)

    refuse("needs a directory of shards", "")
    write(tmp_path / "train-0", [b"a"])
    refuse("no file named as validation-00000", tmp_path)
    write(tmp_path / "my_test-train.tfrecord-0", [b"a"])
    refuse("for training and for testing: renam", tmp_path)
