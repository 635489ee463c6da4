"""Labelled images as sequences of gray values, one source per file."""

import functools

from datasets.images.catalog import open_catalog
from datasets.images.digits import CLASSES as DIGITS
from datasets.images.digits import open_digits
from datasets.images.folder import list_classes, open_folder
from datasets.images.noise import CLASSES as NOISE
from datasets.images.noise import open_noise
from datasets.images.source import ImageError, Images
from datasets.images.store import (
    INVALID_IMAGES,
    PixelStore,
    describe_skipped,
    open_store,
    open_stores,
)
from datasets.images.tfrecords import open_tfrecords

_IMAGENET2012 = (
    "get ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar from "
    "https://image-net.org, put them into {root}/downloads/manual, and "
)


def _catalogued(name, classes, first=""):
    opened = functools.partial(open_catalog, name, first=first)
    return Images(opened, lambda data_dir: classes)


IMAGES = {
    "imagenet2012": _catalogued("imagenet2012", 1000, _IMAGENET2012),
    "imagenet_resized": _catalogued("imagenet_resized/64x64", 1000),
    "imagenette": _catalogued("imagenette/320px-v2", 10),
    "tfrecords": Images(open_tfrecords, lambda data_dir: 1000),
    "folder": Images(open_folder, lambda data_dir: len(list_classes(data_dir))),
    "digits": Images(open_digits, lambda data_dir: DIGITS),
    "noise": Images(open_noise, lambda data_dir: NOISE),
}
"""Data sets by name."""

__all__ = [
    "IMAGES",
    "INVALID_IMAGES",
    "ImageError",
    "Images",
    "PixelStore",
    "describe_skipped",
    "open_store",
    "open_stores",
]
