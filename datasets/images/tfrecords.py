"""Shards of TFRecords with encoded images.

Names of shards have the word `train`, or `validation`, `val` or `test`, as
`train-00000-of-01024` or `imagenet-validation.tfrecord-00000-of-00128`. An
example has the features `image/encoded` and `image/class/label`, where classes
count from 1, or `image` and `label`, where they count from 0.
"""

import functools
import re

import tensorflow as tf

from datasets.images.source import (
    ImageError,
    Item,
    Source,
    check_directory,
    describe_files,
    reading_files,
)

SPLITS = {"train": ("train",), "test": ("validation", "val", "test")}
FEATURES = {
    # Image, label, and the first class.
    "image/encoded": ("image/class/label", 1),
    "image": ("label", 0),
}


@reading_files()
def open_tfrecords(data_dir):
    """Opens the shards of a directory.

    Args:
        data_dir: str. Path of the directory.

    Returns:
        Dict from `"train"` and `"test"` to their `Source`.

    Raises:
        ImageError: If a split has no shard, or a shard may be of both.
    """
    path = check_directory(
        data_dir, "--dataset=tfrecords needs a directory of shards"
    )
    files = {split: [] for split in SPLITS}
    for file in sorted(file for file in path.iterdir() if file.is_file()):
        found = set(re.split(r"[^a-z]+", file.name.lower()))
        splits = [n for n, words in SPLITS.items() if found.intersection(words)]
        if len(splits) > 1:
            raise ImageError(
                f"{file} is named as a shard for training and for testing: "
                "rename it."
            )
        for split in splits:
            files[split].append(file.name)
    return {
        split: _make_source(split, path, files[split], words)
        for split, words in SPLITS.items()
    }


def _make_source(split, path, files, words):
    if not files:
        raise ImageError(
            f"{path} has no file named as {words[0]}-00000-of-01024: choose "
            "the directory of the shards."
        )
    return Source(
        f"tfrecords-{split}",
        functools.partial(_read, [path / file for file in files]),
        **describe_files(path, files),
    )


def _read(files):
    for file in files:
        records = tf.data.TFRecordDataset(str(file)).as_numpy_iterator()
        try:
            for number, record in enumerate(records):
                yield _parse(f"{file}, record {number}", record)
        except tf.errors.OpError as error:
            fault = f"is damaged ({error.message}): replace it."
            with file.open("rb") as content:
                if content.read(2) == b"\x1f\x8b":
                    fault = "is compressed: decompress it with gunzip."
            raise ImageError(f"{file} {fault}") from None


def _parse(name, record):
    try:
        features = tf.train.Example.FromString(record).features.feature
    # protobuf's own error has no public name in TensorFlow.
    except Exception as error:
        raise ImageError(f"{name} is no tf.train.Example: {error}.") from None
    for image, (label, first) in FEATURES.items():
        if image in features and label in features:
            contents = features[image].bytes_list.value
            labels = features[label].int64_list.value
            if len(contents) == len(labels) == 1:
                return Item(name, contents[0], labels[0] - first)
    raise ImageError(
        f"{name} has the features {', '.join(sorted(features)) or 'none'}: "
        "expected image/encoded with image/class/label, or image with label."
    )
