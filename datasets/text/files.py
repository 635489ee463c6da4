"""Text of files that are there already: one's own, or Python's own source.

A file is split into its first 90%, the next 5% and the last 5%. The files of a
folder are split by a hash of their names, so that each is in one split as a
whole, and adding a file moves no other. If this leaves a split empty, as with
few files, each of them is split as a single file is.
"""

import hashlib
import pathlib
import sysconfig

from datasets.text.corpus import Corpus, CorpusError, Part
from datasets.text.enwik8 import split_files


def open_path(path):
    """Opens the splits of a file, or of all files of a folder.

    Args:
        path: File or folder.

    Returns:
        Dict from the name of a split to its `Corpus`.

    Raises:
        CorpusError: If there is no text.
    """
    path = pathlib.Path(path)
    if path.is_file():
        return _check(split_files([path]), path)
    if not path.is_dir():
        raise CorpusError(f"{path} is neither a file nor a folder of text.")
    return _check(_split_folder(path, path.rglob("*")), path)


def open_python_source():
    """Opens the source files of the installed Python's standard library.

    Without its tests, which not every installation has, and without packages
    that were installed later.

    Returns:
        Dict from the name of a split to its `Corpus`.

    Raises:
        CorpusError: If the files are not there.
    """
    root = pathlib.Path(sysconfig.get_path("stdlib"))
    left_out = {"site-packages", "dist-packages", "test", "tests"}
    files = (
        file
        for file in root.rglob("*.py")
        if not left_out & set(file.relative_to(root).parts)
    )
    return _check(_split_folder(root, files), root)


def _split_folder(root, files):
    files = sorted(filter(pathlib.Path.is_file, files))
    parts = {"train": [], "validation": [], "test": []}
    for file in files:
        name = file.relative_to(root).as_posix()
        digest = hashlib.sha256(name.encode(errors="surrogateescape")).digest()
        split = {0: "validation", 1: "test"}.get(digest[0] % 20, "train")
        parts[split].append(Part(file, 0, file.stat().st_size))
    splits = {split: Corpus(found) for split, found in parts.items()}
    return splits if all(map(len, splits.values())) else split_files(files)


def _check(splits, path):
    empty = [name for name, corpus in splits.items() if not len(corpus)]
    if empty:
        raise CorpusError(
            f"{path} has no bytes for {' and '.join(empty)}: choose more text."
        )
    return splits
