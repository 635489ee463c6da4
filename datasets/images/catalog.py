"""Images that TensorFlow Datasets prepares."""

import functools

import tensorflow as tf
from absl import logging

from datasets.images.source import ImageError, Item, Source

TESTED = "validation"


def open_catalog(name, data_dir="", *, first=""):
    """Opens a data set that TensorFlow Datasets has prepared.

    Args:
        name: str. Its name there, as `imagenette/320px-v2`.
        data_dir: str. Directory of TensorFlow Datasets; empty: its default.
        first: str. What to do before the data can be prepared, for the
            message, with `{root}` for the directory.

    Returns:
        Dict from `"train"` and `"test"` to their `Source`.

    Raises:
        ImageError: If they are not prepared.
    """
    try:
        import tensorflow_datasets as tfds
    except ImportError:
        raise ImageError(
            f"{name} comes from TensorFlow Datasets: install the extra `tfds`."
        ) from None
    verbosity = logging.get_verbosity()
    try:
        # It warns of what is not there.
        logging.set_verbosity(logging.ERROR)
        builder = tfds.builder(name, data_dir=data_dir or None)
        is_prepared = builder.is_prepared()
    # Errors of several classes, for damaged files of a data set.
    except Exception as error:
        raise ImageError(f"{name} cannot be opened: {error}.") from None
    finally:
        logging.set_verbosity(verbosity)
    if not is_prepared:
        # Below it, folders for the data set, its variant and its version.
        root = builder.data_path.parents[name.count("/") + 1]
        where = f" --data_dir={root}" if data_dir else ""
        raise ImageError(
            f"{name} is not prepared in {root}: {first.format(root=root)}run "
            f"`tfds build {name}{where}`. Or begin with --dataset=digits, "
            "which needs no other data."
        )
    return {
        split: Source(
            f"{builder.name}-{split}",
            functools.partial(_read, builder, name_there),
            identity=builder.info.full_name,
            version=str(builder.data_path),
            count=builder.info.splits[name_there].num_examples,
        )
        for split, name_there in (("train", "train"), ("test", TESTED))
    }


def _read(builder, split):
    import tensorflow_datasets as tfds

    examples = builder.as_dataset(
        split=split,
        shuffle_files=False,
        decoders={"image": tfds.decode.SkipDecoding()},
        # By default the order depends on the machine's load.
        read_config=tfds.ReadConfig(interleave_cycle_length=1),
    )
    full_name = builder.info.full_name
    try:
        for number, example in enumerate(tfds.as_numpy(examples)):
            name = f"{full_name}, {split} image {number}"
            yield Item(name, example["image"], int(example["label"]))
    except tf.errors.OpError as error:
        raise ImageError(
            f"{full_name} in {builder.data_path} is damaged ({error.message}): "
            "remove it and prepare it again."
        ) from None
