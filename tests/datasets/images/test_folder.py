import os

import pytest

from datasets.images.folder import list_classes, open_folder
from datasets.images.source import ImageError
from datasets.images.store import open_store
from tests.datasets.images.awkward import encode_gray


def write(root, **counts):
    for name, count in counts.items():
        (root / name).mkdir(parents=True)
        for number in range(count):
            path = root / name / f"{number:03}.PNG"
            path.write_bytes(encode_gray(number))
    (root / "README.txt").write_text("")


def items(source):
    return [(item.content.name, item.label) for item in source.read()]


def test_folders_of_splits(tmp_path):
    write(tmp_path / "Training", dog=2, cat=1, emu=0)
    write(tmp_path / "Test", cat=1)
    found = open_folder(str(tmp_path))
    assert list_classes(str(tmp_path)) == ["cat", "dog", "emu"]
    trained = [("000.PNG", 0), ("000.PNG", 1), ("001.PNG", 1)]
    assert items(found["train"]) == trained
    assert items(found["test"]) == [("000.PNG", 0)]
    assert found["train"].empty_classes == ("emu",)
    assert not found["test"].empty_classes


@pytest.mark.parametrize("root", [".", "train"])
def test_a_hash_splits_files(tmp_path, root):
    write(tmp_path / root, cat=100, dog=100)
    write(tmp_path / root, **{".git": 1})
    assert list_classes(tmp_path) == ["cat", "dog"]
    before = {name: set(items(s)) for name, s in open_folder(tmp_path).items()}
    assert not before["train"] & before["test"]
    assert len(before["train"] | before["test"]) == 200
    assert 8 <= len(before["test"]) <= 35
    (tmp_path / root / "cat" / "new.jpg").write_bytes(b"")
    after = {name: set(items(s)) for name, s in open_folder(tmp_path).items()}
    assert before["train"] <= after["train"]
    assert before["test"] <= after["test"]


def test_another_file_is_another_source(tmp_path):
    write(tmp_path, cat=30, dog=30)
    before = open_folder(tmp_path)["train"]
    for file in (tmp_path / "cat").iterdir():
        os.utime(file, ns=(0, 0))
    after = open_folder(tmp_path)["train"]
    assert after.version != before.version
    assert after.identity == before.identity
    write(tmp_path, emu=30)
    assert open_folder(tmp_path)["train"].identity != before.identity


def test_names_that_are_not_utf_8(tmp_path):
    write(tmp_path, cat=30, dog=30)
    name = os.fsdecode(b"\xff.png")
    (tmp_path / "cat" / name).write_bytes(encode_gray(1))
    source = open_folder(tmp_path)["train"]
    store = open_store(source, [(2, 2)], tmp_path / "cache", report=print)
    assert len(store) == source.count


def test_folders_of_another_form(tmp_path):
    def refuse(message, folder):
        with pytest.raises(ImageError, match=message):
            open_folder(folder)

    refuse("needs a folder of images by class", "")
    refuse("has no folders", tmp_path)
    write(tmp_path, photos=3)
    refuse("has only the folder photos: put", tmp_path)
    write(tmp_path, cat=30)
    (tmp_path / "cat" / "a.jpg").symlink_to(tmp_path / "none")
    refuse("^cannot read .*cat/a.jpg: No such file", tmp_path)
    write(tmp_path / "train", cat=3, dog=1)
    write(tmp_path / "val", cat=1, emu=1)
    refuse("emu is a class without images for training", tmp_path)
