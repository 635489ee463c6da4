import pytest

from datasets.text import TEXTS
from datasets.text.corpus import CorpusError
from datasets.text.files import open_path, open_python_source


def read_all(corpus):
    return corpus.read(0, len(corpus)).tobytes()


def test_a_file_is_cut_in_three(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(bytes(range(100)))
    splits = open_path(path)
    assert {name: len(found) for name, found in splits.items()} == {
        "train": 90,
        "validation": 5,
        "test": 5,
    }
    assert b"".join(map(read_all, splits.values())) == bytes(range(100))


def write_folder(path, count):
    for number in range(count):
        file = path / f"folder {number % 3}" / f"{number}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(f"<{number}>".encode())


def test_files_of_a_folder_are_in_one_split_each(tmp_path):
    write_folder(tmp_path, 300)
    splits = {name: read_all(c) for name, c in open_path(tmp_path).items()}
    found = {
        name: set(text.decode().strip("<>").split("><"))
        for name, text in splits.items()
    }
    assert set.union(*found.values()) == set(map(str, range(300)))
    assert sum(map(len, found.values())) == 300
    assert 0.8 < len(found["train"]) / 300 < 0.97


def test_a_further_file_moves_no_other(tmp_path):
    write_folder(tmp_path, 100)
    before = {name: read_all(c) for name, c in open_path(tmp_path).items()}
    (tmp_path / "new.txt").write_bytes(b"new")
    after = {name: read_all(c) for name, c in open_path(tmp_path).items()}
    grown = [name for name in before if before[name] != after[name]]
    assert len(grown) == 1
    assert after[grown[0]].replace(b"new", b"") == before[grown[0]]


def test_few_files_are_cut_in_three_each(tmp_path):
    for name, first in (("a", 0), ("b", 100)):
        (tmp_path / name).write_bytes(bytes(range(first, first + 100)))
    (tmp_path / "empty").write_bytes(b"")
    splits = {name: read_all(c) for name, c in open_path(tmp_path).items()}
    assert splits == {
        "train": bytes([*range(90), *range(100, 190)]),
        "validation": bytes([*range(90, 95), *range(190, 195)]),
        "test": bytes([*range(95, 100), *range(195, 200)]),
    }


def test_every_machine_has_the_source_of_python():
    splits = open_python_source()
    sizes = {name: len(corpus) for name, corpus in splits.items()}
    assert sizes["train"] > 5_000_000
    assert min(sizes.values()) > 100_000
    assert b"import " in read_all(splits["test"])
    assert TEXTS["python_source"]("anywhere").keys() == splits.keys()


def test_without_text_there_is_one_line(tmp_path):
    with pytest.raises(CorpusError, match="neither a file nor a folder"):
        open_path(tmp_path / "none")
    with pytest.raises(
        CorpusError, match="no bytes for train and validation and test"
    ):
        open_path(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CorpusError, match="has no bytes for train"):
        open_path(tmp_path / "file")
