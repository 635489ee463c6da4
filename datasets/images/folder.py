"""Image files in a folder for each class.

Either `train/CLASS/*` and `val/CLASS/*` (or `validation`, `test`), or only
`train/CLASS/*` or `CLASS/*`. Then a hash of its name decides which split a
file is in: one in ten is for testing, and adding a file moves no other. Folders
whose names begin with a dot do not count.
"""

import functools
import hashlib
import os

from datasets.images.source import (
    ImageError,
    Item,
    Source,
    check_directory,
    describe_files,
    reading_files,
)

SUFFIXES = {
    *(".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff"),
    *(".ppm", ".pgm"),
}
TRAINED = ("train", "training")
TESTED = ("val", "validation", "valid", "test", "testing")


@reading_files()
def open_folder(data_dir):
    """Opens the images of a folder.

    Args:
        data_dir: str. Path of the folder.

    Returns:
        Dict from `"train"` and `"test"` to their `Source`.

    Raises:
        ImageError: If the folder has not the form that is described above.
    """
    roots = _find_roots(data_dir)
    classes = list_classes(data_dir)
    found = {split: _list_files(root, classes) for split, root in roots.items()}
    if len(roots) == 1:
        files = found["train"]
        found = {
            split: {
                name: [
                    file for file in paths if _is_for_testing(file) == tested
                ]
                for name, paths in files.items()
            }
            for split, tested in (("train", False), ("test", True))
        }
    roots = {"test": roots["train"], **roots}
    return {
        split: _make_source(split, roots[split], files)
        for split, files in found.items()
    }


@reading_files()
def list_classes(data_dir):
    """Returns the names of the classes, sorted.

    Raises:
        ImageError: If there are none.
    """
    root = _find_roots(data_dir)["train"]
    classes = sorted(_list_folders(root))
    if len(classes) < 2:
        only = f"only the folder {classes[0]}" if classes else "no folders"
        raise ImageError(
            f"{root} has {only}: put the images of each class, of at least "
            "two, into a folder with the name of the class."
        )
    return classes


def _find_roots(data_dir):
    """Returns the folder of each split; a single `"train"` is divided."""
    path = check_directory(
        data_dir, "--dataset=folder needs a folder of images by class"
    )
    # Some write Train and Val.
    folders = {name.lower(): path / name for name in _list_folders(path)}
    trained, tested = (
        [folders[name] for name in names if name in folders]
        for names in (TRAINED, TESTED)
    )
    if trained and tested:
        return {"train": trained[0], "test": tested[0]}
    return {"train": trained[0] if trained else path}


def _list_folders(path):
    return [
        entry.name
        for entry in os.scandir(path)
        if entry.is_dir() and not entry.name.startswith(".")
    ]


def _list_files(root, classes):
    """Returns the image files of every class, paths below the root."""
    unknown = set(_list_folders(root)) - set(classes)
    if unknown:
        raise ImageError(
            f"{root / min(unknown)} is a class without images for training: "
            "add some, or remove it."
        )
    return {
        name: sorted(
            path.relative_to(root).as_posix()
            for path in (root / name).rglob("*")
            if path.suffix.lower() in SUFFIXES
        )
        for name in classes
    }


def _is_for_testing(file):
    name = file.encode(errors="surrogateescape")
    return hashlib.sha256(name).digest()[0] % 10 == 0


def _make_source(split, root, files):
    every = [file for paths in files.values() for file in paths]
    return Source(
        f"folder-{split}",
        functools.partial(_read, root, files),
        count=len(every),
        **describe_files(root, every),
        # With few images, a class may have none for testing.
        empty_classes=tuple(
            name
            for name, paths in files.items()
            if not paths and split == "train"
        ),
    )


def _read(root, files):
    for label, paths in enumerate(files.values()):
        for file in paths:
            yield Item(str(root / file), root / file, label)
