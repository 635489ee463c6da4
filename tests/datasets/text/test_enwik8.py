import hashlib
import os
import zipfile

import numpy as np
import pytest
import tensorflow as tf

from datasets.text.batches import training_dataset
from datasets.text.corpus import CorpusError
from datasets.text.enwik8 import BYTES, open_enwik8

CONTENT = np.random.default_rng(0).bytes(20_000)
CHECKS = {"size": 20_000, "sha256": hashlib.sha256(CONTENT).hexdigest()}


def write_zip(path, name="enwik8"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, CONTENT)


def batches(splits):
    dataset = training_dataset(
        splits["train"],
        length_at=lambda step: tf.constant(32),
        batch_size=8,
        seed=1,
        padded_length=32,
        first_step=0,
        last_step=3,
    )
    return [batch["targets"].numpy() for batch in dataset]


def test_the_archive_gives_the_batches_of_the_file(tmp_path):
    for name in ("zipped", "plain"):
        (tmp_path / name).mkdir()
    write_zip(tmp_path / "zipped" / "enwik8.zip")
    (tmp_path / "plain" / "enwik8").write_bytes(CONTENT)
    zipped, plain = (
        open_enwik8(tmp_path / name, **CHECKS) for name in ("zipped", "plain")
    )
    assert {n: len(c) for n, c in plain.items()} == {
        "train": 18_000,
        "validation": 1000,
        "test": 1000,
    }
    np.testing.assert_array_equal(batches(zipped), batches(plain))
    assert not list(tmp_path.rglob("*.partial"))


def test_the_split_of_the_whole_file(tmp_path):
    with (tmp_path / "enwik8").open("wb") as file:
        file.truncate(BYTES)
    splits = open_enwik8(tmp_path, sha256=None)
    sizes = {name: len(corpus) for name, corpus in splits.items()}
    million = 10**6
    assert sizes == {
        "train": 90 * million,
        "validation": 5 * million,
        "test": 5 * million,
    }


def test_a_missing_file_says_where_it_is(tmp_path):
    with pytest.raises(CorpusError) as caught:
        open_enwik8(tmp_path)
    assert str(caught.value) == (
        f"enwik8 is not in {tmp_path}: download "
        "http://mattmahoney.net/dc/enwik8.zip (36,445,475 bytes) and put it "
        "there, as enwik8.zip."
    )


def test_wrong_files(tmp_path):
    path, archive = tmp_path / "enwik8", tmp_path / "enwik8.zip"
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(CorpusError, match="19,999 bytes instead of 20,000"):
        open_enwik8(tmp_path, **CHECKS)
    path.write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(CorpusError, match="was altered, its SHA-256 is"):
        open_enwik8(tmp_path, **CHECKS)
    path.unlink()
    write_zip(archive)
    archive.write_bytes(archive.read_bytes()[:5000])
    with pytest.raises(CorpusError, match=r"enwik8.zip is damaged \(.*again"):
        open_enwik8(tmp_path, **CHECKS)
    write_zip(archive, "enwik9")
    with pytest.raises(CorpusError, match=r"enwik8.zip is damaged \(.*again"):
        open_enwik8(tmp_path, **CHECKS)
    assert not path.exists()
    assert not list(tmp_path.glob("*.partial"))


def test_an_archive_of_another_text_leaves_no_file(tmp_path):
    path, archive = tmp_path / "enwik8", tmp_path / "enwik8.zip"
    wrong = {**CHECKS, "sha256": "0" * 64}
    write_zip(archive)
    message = rf"^enwik8 in {archive} was altered, .*: download http.* again"
    with pytest.raises(CorpusError, match=message):
        open_enwik8(tmp_path, **wrong)
    assert [*tmp_path.iterdir()] == [archive]
    # An archive that is right is preferred to a file that is wrong.
    path.write_bytes(b"wrong")
    splits = open_enwik8(tmp_path, **CHECKS)
    assert path.read_bytes() == CONTENT
    assert len(splits["train"]) == 18_000
    with pytest.raises(CorpusError, match=message):
        open_enwik8(tmp_path, **wrong)
    assert path.read_bytes() == CONTENT


def test_what_is_no_file(tmp_path):
    path, archive = tmp_path / "enwik8", tmp_path / "enwik8.zip"
    os.mkfifo(archive)
    with pytest.raises(CorpusError, match="it is not a regular file"):
        open_enwik8(tmp_path)
    archive.unlink()
    os.mkfifo(path)
    with pytest.raises(CorpusError, match="0 bytes instead of 100,000,000"):
        open_enwik8(tmp_path)
    with pytest.raises(CorpusError, match="it is not a regular file"):
        open_enwik8(tmp_path, size=None)
