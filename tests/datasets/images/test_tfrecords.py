import gzip

import pytest
import tensorflow as tf

from datasets.images.source import ImageError
from datasets.images.tfrecords import open_tfrecords


def write(path, images, first=1, names=("image/encoded", "image/class/label")):
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
    write(tmp_path / "validation-00000-of-00001", [b"d"])
    found = open_tfrecords(str(tmp_path))
    assert items(found["train"]) == [(b"a", 0), (b"b", 1), (b"c", 2)]
    assert items(found["test"]) == [(b"d", 0)]
    assert found["train"].identity != found["test"].identity
    names = [item.name for item in found["train"].read()]
    assert names[1].endswith("train-00000-of-00002, record 1")


def test_names_and_features_of_tensorflow_datasets(tmp_path):
    names = ("image", "label")
    for split in ("train", "test"):
        path = tmp_path / f"birds-{split}.tfrecord-00000-of-00001"
        write(path, [b"a", b"b"], first=0, names=names)
    found = open_tfrecords(tmp_path)
    assert items(found["test"]) == [(b"a", 0), (b"b", 1)]


def test_other_features(tmp_path):
    write(tmp_path / "train-0", [b"a"], names=("picture", "label"))
    write(tmp_path / "val-0", [b"a"])
    with pytest.raises(
        ImageError, match=r"record 0 has the features label, picture: expected"
    ):
        items(open_tfrecords(tmp_path)["train"])


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_shards(tmp_path, damage):
    for name in ("train-0", "val-0"):
        write(tmp_path / name, [b"a" * 50, b"b" * 50])
    path = tmp_path / "train-0"
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[:-7])
    else:
        path.write_bytes(content.replace(b"b" * 50, b"c" * 50))
    with pytest.raises(ImageError, match=r"train-0 is damaged .*: replace it"):
        items(open_tfrecords(tmp_path)["train"])


def test_records_that_are_no_examples(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "train-0")) as file:
        file.write(b"\xff\xff")
    write(tmp_path / "test-0", [b"a"])
    with pytest.raises(ImageError, match=r"record 0 is no tf\.train.Example"):
        items(open_tfrecords(tmp_path)["train"])


def test_compressed_shards(tmp_path):
    for name in ("train-0", "val-0"):
        (tmp_path / name).write_bytes(gzip.compress(b"a" * 50))
    with pytest.raises(ImageError, match=r"train-0 is compressed: decompress "):
        items(open_tfrecords(tmp_path)["train"])


def test_a_shard_of_both_splits(tmp_path):
    write(tmp_path / "my_test-train.tfrecord-00000-of-00001", [b"a"])
    with pytest.raises(ImageError, match="for training and for testing: renam"):
        open_tfrecords(tmp_path)


def test_a_split_is_missing(tmp_path):
    write(tmp_path / "train-0", [b"a"])
    with pytest.raises(ImageError, match="no file named as validation-00000"):
        open_tfrecords(tmp_path)
    for path in ("", str(tmp_path / "none")):
        with pytest.raises(ImageError, match="needs a directory of shards"):
            open_tfrecords(path)
