import pytest

from datasets.text.corpus import CorpusError
from datasets.text.files import open_path, open_python_source
from tests.datasets.text.test_enwik8 import read_all


def test_files_are_cut_in_three_each(tmp_path):
    (tmp_path / "a").write_bytes(bytes(range(100)))
    assert read_all(open_path(tmp_path / "a")) == {
        "train": bytes(range(90)),
        "validation": bytes(range(90, 95)),
        "test": bytes(range(95, 100)),
    }
    (tmp_path / "b").write_bytes(bytes(range(100, 200)))
    (tmp_path / "empty").write_bytes(b"")
    assert read_all(open_path(tmp_path)) == {
        "train": bytes([*range(90), *range(100, 190)]),
        "validation": bytes([*range(90, 95), *range(190, 195)]),
        "test": bytes([*range(95, 100), *range(195, 200)]),
    }


def test_many_files_are_in_one_split_each(tmp_path):
    for number in range(300):
        file = tmp_path / f"folder {number % 3}" / f"{number}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(f"<{number}>".encode())
    before = read_all(open_path(tmp_path))
    found = [
        number
        for text in before.values()
        for number in text.decode().strip("<>").split("><")
    ]
    assert sorted(found) == sorted(map(str, range(300)))
    assert 0.8 < before["train"].count(b"<") / 300 < 0.97
    # A further file moves no other.
    (tmp_path / "new.txt").write_bytes(b"new")
    after = read_all(open_path(tmp_path))
    (grown,) = [name for name in before if before[name] != after[name]]
    assert after[grown].replace(b"new", b"") == before[grown]


def test_every_machine_has_the_source_of_python():
    splits = open_python_source()
    assert len(splits["train"]) > 5_000_000


def test_without_text_there_is_one_line(tmp_path):
    with pytest.raises(CorpusError, match="no bytes for train and validation"):
        open_path(tmp_path)
