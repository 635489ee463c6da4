"""Files of texts that are downloaded."""

import pathlib
import zipfile
import zlib

from datasets.files import hash_file, only_files, write_whole
from datasets.text.corpus import CorpusError

_CHUNK = 2**20
_DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, KeyError, EOFError),
    # Raised for encryption, and for compression that Python lacks.
    *(RuntimeError, NotImplementedError),
)


def extract(archive, member, path, remedy, check=lambda file: None):
    """Extracts a file from a zip archive.

    Args:
        archive: `pathlib.Path` of the archive.
        member: str. Name of the file in the archive.
        path: `pathlib.Path` of the extracted file.
        remedy: str. How to repair a damaged archive, for the message.
        check: Function of the path of the extracted file before it gets its
            name; raises `CorpusError` if it is wrong.

    Raises:
        CorpusError: If the archive is damaged or the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            open(archive, "rb", opener=only_files) as file,
            zipfile.ZipFile(file) as opened,
            opened.open(member) as source,
            write_whole(path) as target,
        ):
            while chunk := source.read(_CHUNK):
                target.write(chunk)
            target.flush()
            check(pathlib.Path(target.name))
    except _DAMAGES as error:
        raise CorpusError(
            f"{archive} is damaged ({error}): {remedy}."
        ) from None
    except OSError as error:
        raise CorpusError(
            f"cannot extract {archive} to {path}: {error.strerror}."
        ) from None


def check_file(path, size, sha256, remedy, name=None):
    """Raises `CorpusError` unless a file has this size and checksum.

    Args:
        path: `pathlib.Path` of the file.
        size: int, or `None`: any.
        sha256: str, or `None`: any.
        remedy: str. How to repair the file, for the message.
        name: str. Name of the file in the message; `None`: its path.
    """
    name = name or path
    try:
        found = path.stat().st_size
        if size is not None and found != size:
            raise CorpusError(
                f"{name} has {found:,} bytes instead of {size:,}: {remedy}."
            )
        if sha256 is not None and (digest := hash_file(path)) != sha256:
            raise CorpusError(
                f"{name} was altered, its SHA-256 is {digest} instead of "
                f"{sha256}: {remedy}."
            )
    except OSError as error:
        raise CorpusError(f"cannot read {name}: {error.strerror}.") from None
