"""enwik8: the first 100,000,000 bytes of an English Wikipedia dump of 2006.

Split as usual: 90 million bytes for training, 5 million for validation, and 5
million for testing.

Reference: Hutter, 2006. http://prize.hutter1.net
"""

import pathlib

from datasets.text.corpus import Corpus, CorpusError, Part
from datasets.text.downloads import check_file, extract

URL = "http://mattmahoney.net/dc/enwik8.zip"
BYTES = 100_000_000
SHA256 = "2b49720ec4d78c3c9fabaee6e4179a5e997302b3a70029f30f2d582218c024a8"
ZIP_BYTES = 36_445_475
SPLITS = {"train": (0, 0.9), "validation": (0.9, 0.95), "test": (0.95, 1)}
"""Where each split begins and ends, as fractions of all bytes."""


def open_enwik8(data_dir, *, size=BYTES, sha256=SHA256):
    """Opens the splits of enwik8.

    Args:
        data_dir: Directory that has `enwik8` or `enwik8.zip`; from the archive
            the file is extracted beside it, unless a right one is there.
        size: int. Expected number of bytes, or `None`: any.
        sha256: str. Expected checksum, or `None`: any.

    Returns:
        Dict from the name of a split to its `Corpus`.

    Raises:
        CorpusError: If the file is missing, truncated or altered.
    """
    directory = pathlib.Path(data_dir)
    path, archive = directory / "enwik8", directory / "enwik8.zip"
    remedy = f"download {URL} again"
    if not (path.exists() or archive.exists()):
        raise CorpusError(
            f"enwik8 is not in {directory}: download {URL} "
            f"({ZIP_BYTES:,} bytes) and put it there, as enwik8.zip."
        )

    def check(extracted):
        name = f"enwik8 in {archive}"
        check_file(extracted, size, sha256, remedy, name)

    try:
        check_file(path, size, sha256, remedy)
    except CorpusError:
        # It is missing, or of an archive that was replaced since.
        if not archive.exists():
            raise
        extract(archive, "enwik8", path, remedy, check)
    return split_files([path])


def split_files(paths):
    """Splits the bytes of each file into training, validation and test.

    Args:
        paths: List of the files' `pathlib.Path`s.

    Returns:
        Dict from the name of a split to its `Corpus`.
    """
    sizes = [path.stat().st_size for path in paths]
    return {
        name: Corpus(
            [
                Part(path, round(first * size), round(last * size))
                for path, size in zip(paths, sizes, strict=True)
            ]
        )
        for name, (first, last) in SPLITS.items()
    }
