"""Decoded images, in files that are read at random places.

A split is decoded once, to all sizes that are missing, by several threads; at
no time are more than a few hundred images in memory. A size of a split is two
files: `*.pixels` with the gray values of all images, one after the other, and
`*.npz` with their labels, the names of the images that were skipped, and a hash
of the encoded images.
"""

import concurrent.futures
import contextlib
import hashlib
import itertools
import os
import pathlib
import time
import zipfile

import numpy as np
import tensorflow as tf

from datasets.files import only_files, write_whole
from datasets.images.decode import check_installed, decode
from datasets.images.source import ImageError

INVALID_IMAGES = ("error", "skip")
"""Ways to treat an image that cannot be decoded."""

_CHUNK = 256


class PixelStore:
    """Gray values and labels of a split, at one or more sizes.

    Their number is `len(store)`.

    Args:
        images: Dict from pairs `(height, width)` to uint8 arrays
            `(N, height, width)`.
        labels: int32 array `(N,)`.
        skipped: List of str. Names of the images that were left out.
        contents: bytes. Hash of the encoded images.

    Attributes: `images`, `labels` and `skipped`; and `digest`, bytes that
    differ where these are other images, wherever they are.
    """

    def __init__(self, images, labels, skipped=(), *, contents=b""):
        self.images = images
        self.labels = labels
        self.skipped = list(skipped)
        self.digest = _hash(
            contents, f"{len(self.skipped)} skipped", labels.tobytes()
        )

    def __len__(self):
        return len(self.labels)

    @property
    def majority(self):
        """Share of the images that have the most frequent class, a float."""
        return float(np.bincount(self.labels).max() / len(self))

    def read(self, indices, size):
        """Reads images of a size.

        Args:
            indices: Integer tensor `(B,)`, from 0 to `N - 1`.
            size: int tensor `(2,)`, height and width, one of the sizes.

        Returns:
            int32 tensor `(B, height, width)` of gray values, and int32 `(B,)`
            of labels.
        """

        def read(indices, size):
            images = self.images[tuple(size.tolist())]
            return images[indices], self.labels[indices]

        images, labels = tf.numpy_function(
            read, [indices, size], (tf.uint8, tf.int32)
        )
        images = tf.ensure_shape(images, (indices.shape[0], None, None))
        labels = tf.ensure_shape(labels, indices.shape)
        return tf.cast(images, tf.int32), labels


def describe_skipped(stores):
    """Returns a sentence on images that were left out, `""` for none.

    Args:
        stores: Dict from the name of a split to its `PixelStore`.
    """
    skipped = [name for store in stores.values() for name in store.skipped]
    if not skipped:
        return ""
    return f"{len(skipped)} image(s) could not be decoded: {_list(skipped)}."


def open_stores(sources, sizes, directory, *, classes, **options):
    """Opens the decoded images of several splits: see `open_store`.

    Args:
        sources: Dict from the name of a split to its `Source`.
        sizes: Dict from the name of a split to a list of sizes.
        directory: Path of the directory for the files.
        classes: int. Number of classes; labels are below it.
        **options: `invalid_images` and `report`.

    Returns:
        Dict from the name of a split to its `PixelStore`.

    Raises:
        ImageError: As `open_store`, or if there are other labels.
    """
    stores = {}
    for split, source in sources.items():
        store = open_store(source, sizes[split], directory, **options)
        first, last = store.labels.min(), store.labels.max()
        if first < 0:
            raise ImageError(
                f"{source.name} has a class before the first one: classes "
                "count from 0, those of image/class/label from 1."
            )
        if last >= classes:
            raise ImageError(
                f"{source.name} has classes from {first} to {last}, but the "
                f"model has {classes}, from 0: set --num_classes."
            )
        stores[split] = store
    return stores


def open_store(source, sizes, directory, *, invalid_images="error", report):
    """Opens the decoded images of a split; decodes them where necessary.

    Args:
        source: `Source` of the split.
        sizes: List of pairs of int, heights and widths.
        directory: Path of the directory for the files.
        invalid_images: What happens to images that cannot be decoded, and to
            classes without images: `"refuse"` or `"skip"`.
        report: Function of a line of text, called with the progress.

    Returns:
        `PixelStore`.

    Raises:
        ImageError: If an image cannot be decoded and is not to be skipped, if
            no image is left, or if the files cannot be written.
    """
    check_installed()
    if source.empty_classes and invalid_images == "error":
        raise ImageError(
            f"{source.name} has no image of {_list(source.empty_classes)}: add "
            "some, or go on without them by --invalid_images=skip."
        )
    if source.in_memory:
        return _read_all(source, sizes, invalid_images)
    paths = _list_paths(source, sizes, pathlib.Path(directory))
    try:
        found = {size: _open(path, size) for size, path in paths.items()}
        missing = {
            size: path for size, path in paths.items() if found[size] is None
        }
        if not _have_same_images(found.values()):
            missing = paths
        if missing:
            pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
            _decode(source, missing, invalid_images, report)
            found |= {size: _open(path, size) for size, path in missing.items()}
    except OSError as error:
        raise ImageError(
            f"cannot keep decoded images in {directory}: {error.strerror}; "
            "name another directory by --cache_dir."
        ) from None
    images = {size: opened[0] for size, opened in found.items()}
    _, labels, skipped, contents = next(iter(found.values()))
    _check_skipped(source, skipped.tolist(), invalid_images)
    return PixelStore(
        images, labels, skipped.tolist(), contents=contents.tobytes()
    )


def _have_same_images(found):
    """Whether all sizes that were opened have the same images."""
    kept = [record[1:] for record in found if record is not None]
    return all(
        np.array_equal(one, other)
        for record in kept
        for one, other in zip(kept[0], record, strict=True)
    )


def _read_all(source, sizes, invalid_images):
    images, labels, skipped, contents = [], [], [], hashlib.sha256()
    for label, gray, content in _decode_items(
        source, sizes, lambda line: None, skipped
    ):
        images.append(gray)
        labels.append(label)
        contents.update(content)
    _check_skipped(source, skipped, invalid_images)
    _check_any(source, labels)
    stacked = map(np.stack, zip(*images, strict=True))
    return PixelStore(
        dict(zip(sizes, stacked, strict=True)),
        np.array(labels, np.int32),
        skipped,
        contents=contents.digest(),
    )


def _decode(source, paths, invalid_images, report):
    """Writes the files of some sizes."""
    labels, skipped, contents = [], [], hashlib.sha256()
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(write_whole(path)) for path in paths.values()
        ]
        for label, images, content in _decode_items(
            source, list(paths), report, skipped
        ):
            labels.append(label)
            contents.update(content)
            for file, image in zip(files, images, strict=True):
                file.write(image.tobytes())
        _check_skipped(source, skipped, invalid_images)
        _check_any(source, labels)
    for path in paths.values():
        with write_whole(path.with_suffix(".npz")) as file:
            np.savez(
                file,
                labels=np.array(labels, np.int32),
                skipped=np.array(skipped, np.str_),
                contents=np.frombuffer(contents.digest(), np.uint8),
            )


def _decode_items(source, sizes, report, skipped):
    """Yields label, images and hash of every item.

    Appends the names of bad ones to `skipped`.
    """

    def decoded(item):
        content = item.content
        try:
            if isinstance(content, pathlib.Path):
                content = content.read_bytes()
            return item, (decode(content, sizes), _hash(content)), None
        except ImageError as error:
            return item, None, error
        except OSError as error:
            # Unlike a bad image, it may be there the next time.
            raise ImageError(
                f"cannot read {item.name}: {error.strerror}."
            ) from None

    start, done, items = time.monotonic(), 0, iter(source.read())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while chunk := list(itertools.islice(items, _CHUNK)):
            for item, found, error in pool.map(decoded, chunk):
                if error is None:
                    yield item.label, *found
                    continue
                skipped.append(f"{item.name} ({error})")
            done += len(chunk)
            rate = done / (time.monotonic() - start)
            of = f" of {source.count:,}" if source.count else ""
            bad = f", {len(skipped)} bad" if skipped else ""
            report(
                f"{source.name}: decoded {done:,}{of} images, {rate:,.0f}/s"
                f"{bad}"
            )


def _open(path, size):
    """Returns images, labels, skipped names and hash; `None` if not there."""
    try:
        known = path.with_suffix(".npz")
        with open(known, "rb", opener=only_files) as file:
            record = np.load(file)
            kept = [record[n] for n in ("labels", "skipped", "contents")]
        kinds = [array.dtype.str[1:] for array in kept]
        if kinds[0] != "i4" or kinds[1][0] != "U" or kinds[2] != "u1":
            return None
        shape = (len(kept[0]), *size)
        if path.stat().st_size != np.prod(shape):
            return None
        return np.memmap(path, np.uint8, "r", shape=shape), *kept
    except (
        FileNotFoundError,
        # Raised if the file holds one array, or one without a length.
        *(IndexError, TypeError),
        *(KeyError, ValueError, EOFError, MemoryError),
        zipfile.BadZipFile,
    ):
        return None


def _list_paths(source, sizes, directory):
    digest = _hash(source.identity, source.version).hex()[:16]
    return {
        (height, width): directory
        / f"{source.name}-{height}x{width}-{digest}.pixels"
        for height, width in sizes
    }


def _check_any(source, labels):
    if not labels:
        raise ImageError(
            f"{source.name} has no image: look at --data_dir, and put some of "
            "few images into a folder for testing."
        )


def _check_skipped(source, skipped, invalid_images):
    if skipped and invalid_images == "error":
        raise ImageError(
            f"{source.name} has images that cannot be decoded, "
            f"{_list(skipped)}: replace or remove them, or leave such images "
            "out with --invalid_images=skip."
        )


def _hash(*parts):
    """Returns a hash of several texts or bytes."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            # Names of files need not be UTF-8.
            part = part.encode(errors="surrogateescape")
        found.update(hashlib.sha256(part).digest())
    return found.digest()


def _list(names, most=3):
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
