import pytest

from datasets.images.folder import list_classes, open_folder
from datasets.images.source import ImageError
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


@pytest.mark.parametrize("name", ["val", "validation", "test"])
def test_folders_of_splits(tmp_path, name):
    write(tmp_path / "train", dog=3, cat=2)
    write(tmp_path / name, cat=1)
    found = open_folder(str(tmp_path))
    assert list_classes(str(tmp_path)) == ["cat", "dog"]
    assert items(found["train"]) == [
        *(("000.PNG", 0), ("001.PNG", 0)),
        *(("000.PNG", 1), ("001.PNG", 1), ("002.PNG", 1)),
    ]
    assert items(found["test"]) == [("000.PNG", 0)]
    assert (found["train"].count, found["test"].count) == (5, 1)
    assert not found["test"].empty_classes


def test_a_hash_splits_files(tmp_path):
    write(tmp_path, cat=100, dog=100)
    before = {name: set(items(s)) for name, s in open_folder(tmp_path).items()}
    assert not before["train"] & before["test"]
    assert len(before["train"] | before["test"]) == 200
    assert 8 <= len(before["test"]) <= 35
    (tmp_path / "cat" / "new.jpg").write_bytes(b"")
    after = {name: set(items(s)) for name, s in open_folder(tmp_path).items()}
    assert before["train"] <= after["train"]
    assert before["test"] <= after["test"]


def test_another_file_is_another_source(tmp_path):
    write(tmp_path, cat=30)
    before = open_folder(tmp_path)["train"].identity
    assert open_folder(tmp_path)["train"].identity == before
    write(tmp_path, dog=30)
    assert open_folder(tmp_path)["train"].identity != before


def test_classes_without_images(tmp_path):
    write(tmp_path / "train", cat=3, dog=0)
    write(tmp_path / "val", cat=0)
    found = open_folder(tmp_path)
    assert found["train"].empty_classes == ("dog",)


def test_a_class_for_testing_alone(tmp_path):
    write(tmp_path / "train", cat=3)
    write(tmp_path / "val", cat=1, dog=1)
    with pytest.raises(ImageError, match="dog is a class without images for "):
        open_folder(tmp_path)


@pytest.mark.parametrize("make", [False, True])
def test_no_folder_of_images(tmp_path, make):
    path = tmp_path / "images"
    if make:
        path.mkdir()
    with pytest.raises(
        ImageError, match="has no folders" if make else "needs a folder"
    ):
        open_folder(path)
    with pytest.raises(ImageError, match="needs a folder"):
        open_folder("")
