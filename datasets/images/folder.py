"""Image files in a folder for each class.

Either `train/CLASS/*` and `val/CLASS/*` (or `validation`, `test`), or only
`CLASS/*`. Then a hash of its name decides which split a file is in: one in ten
is for testing, and adding a file moves no other.
"""

import functools
import hashlib
import os

from datasets.images.source import ImageError, Item, Source, check_directory

SUFFIXES = {
    *(".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff"),
    *(".ppm", ".pgm"),
}
TESTED = ("val", "validation", "test")


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
                name: [file for file in own if _is_for_testing(file) == tested]
                for name, own in files.items()
            }
            for split, tested in (("train", False), ("test", True))
        }
    roots = {"test": roots["train"], **roots}
    return {
        split: _make_source(split, roots[split], files)
        for split, files in found.items()
    }


def list_classes(data_dir):
    """Returns the names of the classes, sorted.

    Raises:
        ImageError: If there are none.
    """
    root = _find_roots(data_dir)["train"]
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    if not classes:
        raise ImageError(
            f"{root} has no folders: put the images of each class into a "
            "folder with the name of the class."
        )
    return classes


def _find_roots(data_dir):
    """Returns the folder of each split; `"train"` alone has both."""
    path = check_directory(
        data_dir, "--dataset=folder needs a folder of images by class"
    )
    tested = [path / name for name in TESTED if (path / name).is_dir()]
    if (path / "train").is_dir() and tested:
        return {"train": path / "train", "test": tested[0]}
    return {"train": path}


def _list_files(root, classes):
    """Returns the image files of every class, paths below the root."""
    unknown = {
        entry.name for entry in os.scandir(root) if entry.is_dir()
    } - set(classes)
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
    described = [
        f"{file} {(root / file).stat().st_size}"
        for own in files.values()
        for file in own
    ]
    return Source(
        f"folder-{split}",
        functools.partial(_read, root, files),
        identity="\n".join([str(root.resolve()), *described]),
        count=len(described),
        # With few images, a class may have none for testing.
        empty_classes=tuple(
            name for name, own in files.items() if not own and split == "train"
        ),
    )


def _read(root, files):
    for label, own in enumerate(files.values()):
        for file in own:
            yield Item(str(root / file), root / file, label)
