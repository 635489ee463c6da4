import hashlib
import zipfile

import pytest

from datasets.files import hash_file
from datasets.text import vocabulary, wikitext103
from datasets.text.corpus import CorpusError
from datasets.text.wikitext103 import (
    ARCHIVE,
    FILES,
    has_published_text,
    open_wikitext103,
)
from tests.datasets.text.test_enwik8 import read_all
from tests.datasets.text.vocabularies import write_byte_pairs

TEXTS_OF_SPLITS = {
    "train": " \n = Title = \n \n the cat sat on the mat . \n" * 30,
    "validation": " \n the hat sat . \n",
    "test": " the cat @-@ mat \n",
}
# Words and ends of lines, counted by hand.
WORDS = {"train": 30 * (3 + 7 + 4), "validation": 4 + 2, "test": 4 + 1}


def write_raw(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for split, text in TEXTS_OF_SPLITS.items():
        (folder / FILES[split]).write_text(text)


def write_zip(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for split, text in TEXTS_OF_SPLITS.items():
            archive.writestr(f"wikitext-103-raw/{FILES[split]}", text)


@pytest.fixture
def open_splits(tmp_path):
    write_byte_pairs(tmp_path / "gpt2")

    def open_splits(directory, **kwargs):
        kwargs = {"vocabulary": tmp_path / "gpt2", "published": False} | kwargs
        return open_wikitext103(directory, report=[].append, **kwargs)

    return open_splits


def test_folder_and_archive_give_the_same_tokens(tmp_path, open_splits):
    write_raw(tmp_path / "in" / "wikitext-103-raw")
    (tmp_path / "zipped").mkdir()
    write_zip(tmp_path / "zipped" / ARCHIVE)
    found = [
        open_splits(tmp_path / name)
        for name in ("in", "in/wikitext-103-raw", "zipped")
    ]
    assert read_all(found[0]) == read_all(found[1]) == read_all(found[2])
    assert {n: c.words for n, c in found[0].items()} == WORDS


def test_word_pieces_are_learned_once(tmp_path):
    write_raw(tmp_path)
    lines = []

    def open_learned():
        return open_wikitext103(
            tmp_path, vocabulary_size=80, report=lines.append, published=False
        )

    splits = open_learned()
    assert "learning 80 word pieces from 8 words" in lines[0]
    lines.clear()
    assert read_all(open_learned()) == read_all(splits)
    assert not lines
    # "hat" consists of characters of the training text.
    validation = splits["validation"]
    assert 1 not in validation.read(0, len(validation))
    (tmp_path / FILES["train"]).write_text(" another text \n" * 9)
    open_learned()
    assert len(list(tmp_path.glob("vocab-80-*.txt"))) == 2


def test_bad_files_are_refused(tmp_path, open_splits):
    def refuse(message, **kwargs):
        with pytest.raises(CorpusError, match=message):
            open_splits(tmp_path, **kwargs)

    refuse(r"wiki.train.raw is missing: download.*put it there", published=True)
    refuse("is missing in .*: put text into files of the names wiki.train.raw")
    write_raw(tmp_path)
    (tmp_path / FILES["test"]).write_text("")
    refuse("wiki.test.raw is empty: download")
    for name in FILES.values():
        (tmp_path / name).unlink()
    archive = tmp_path / ARCHIVE
    write_zip(archive)
    content = archive.read_bytes()
    # Inside the compressed text of the first file.
    archive.write_bytes(content[:60] + b"\xff\xff\xff" + content[63:])
    refuse(r"zip is damaged \(.*: download https://.* again")
    refuse("zip was altered, its SHA-256 is", published=True)
    assert not list(tmp_path.rglob("*.partial"))
    (tmp_path / "wikitext-103-raw" / FILES["train"]).mkdir()
    write_zip(archive)
    refuse("cannot read or write WikiText-103")


def test_published_files_and_vocabularies_are_told(
    tmp_path, open_splits, monkeypatch
):
    for split, text in TEXTS_OF_SPLITS.items():
        digest = hashlib.sha1(text.encode()).hexdigest()
        monkeypatch.setitem(wikitext103.SHA1, split, digest)
    for name in vocabulary.GPT2_SHA256:
        digest = hash_file(tmp_path / "gpt2" / name)
        monkeypatch.setitem(vocabulary.GPT2_SHA256, name, digest)
    write_raw(tmp_path)
    splits = open_splits(tmp_path, published=True)
    assert splits["train"].vocabulary.is_published
    assert has_published_text(tmp_path)

    other = tmp_path / "other"
    write_byte_pairs(other, merges=["t h"])
    message = "other does not contain GPT-2's vocabulary: download vocab.json"
    with pytest.raises(CorpusError, match=message):
        open_splits(tmp_path, vocabulary=other, published=True)
    splits = open_splits(tmp_path, vocabulary=other)
    assert not splits["train"].vocabulary.is_published

    path = tmp_path / FILES["test"]
    path.write_text(path.read_text().replace("the", "The"))
    message = f"{path} is not a file of WikiText-103: its SHA-1 is "
    with pytest.raises(CorpusError, match=message):
        open_splits(tmp_path, published=True)
    assert not has_published_text(tmp_path)
