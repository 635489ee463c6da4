import hashlib
import os
import zipfile

import numpy as np
import pytest

from datasets.text.corpus import CorpusError
from datasets.text.enwik8 import open_enwik8

CONTENT = np.random.default_rng(0).bytes(20_000)
CHECKS = {"size": 20_000, "sha256": hashlib.sha256(CONTENT).hexdigest()}


def write_zip(path, name="enwik8"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, CONTENT)


def read_all(splits):
    return {n: c.read(0, len(c)).tobytes() for n, c in splits.items()}


def test_the_archive_gives_the_bytes_of_the_file(tmp_path):
    write_zip(tmp_path / "enwik8.zip")
    extracted = read_all(open_enwik8(tmp_path, **CHECKS))
    assert extracted == {
        "train": CONTENT[:18_000],
        "validation": CONTENT[18_000:19_000],
        "test": CONTENT[19_000:],
    }
    (tmp_path / "enwik8.zip").unlink()
    assert read_all(open_enwik8(tmp_path, **CHECKS)) == extracted


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "enwik8 is not in .*: download http.* as enwik8.zip"),
        (CONTENT[:-1], "19,999 bytes instead of 20,000"),
        (CONTENT[:-1] + b"x", "was altered, its SHA-256 is"),
    ],
)
def test_wrong_files(tmp_path, content, message):
    if content:
        (tmp_path / "enwik8").write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        open_enwik8(tmp_path, **CHECKS)


@pytest.mark.parametrize(("name", "kept"), [("enwik8", 5000), ("enwik9", None)])
def test_wrong_archives(tmp_path, name, kept):
    archive = tmp_path / "enwik8.zip"
    write_zip(archive, name)
    archive.write_bytes(archive.read_bytes()[:kept])
    with pytest.raises(CorpusError, match=r"enwik8.zip is damaged \(.*again"):
        open_enwik8(tmp_path, **CHECKS)
    assert [*tmp_path.iterdir()] == [archive]


def test_an_archive_of_another_text_leaves_no_file(tmp_path):
    path, archive = tmp_path / "enwik8", tmp_path / "enwik8.zip"
    write_zip(archive)
    message = rf"^enwik8 in {archive} was altered, .*: download http.* again"
    with pytest.raises(CorpusError, match=message):
        open_enwik8(tmp_path, **{**CHECKS, "sha256": "0" * 64})
    assert [*tmp_path.iterdir()] == [archive]
    # An archive that is right is preferred to a file that is wrong.
    path.write_bytes(b"wrong")
    open_enwik8(tmp_path, **CHECKS)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("name", ["enwik8", "enwik8.zip"])
def test_what_is_no_file(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(CorpusError, match="it is not a regular file"):
        open_enwik8(tmp_path, size=None)
