from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from datasets.images import store as module
from datasets.images.decode import decode
from datasets.images.source import ImageError, Item, Source
from datasets.images.store import describe_skipped, open_store, open_stores
from tests.datasets.images.awkward import encode_gray, make_source

SMALL, LARGE = (2, 3), (7, 5)
GRAYS = [10, 20, 30, 40]


def make_grays(grays=GRAYS, **fields):
    return make_source([encode_gray(gray) for gray in grays], **fields)


def open_(source, directory, sizes=(SMALL, LARGE), **options):
    options["report"] = [].append
    return open_store(source, list(sizes), directory, **options)


def assert_grays(store, grays=GRAYS):
    for size, images in store.images.items():
        assert images.shape == (len(grays), *size)
        assert (images == np.array(grays)[:, None, None]).all()


def test_images_of_all_sizes(tmp_path):
    store = open_(make_grays(), tmp_path / "new" / "directory")
    assert len(store) == 4 and not store.skipped
    assert store.labels.tolist() == [0, 1, 0, 1]
    assert store.majority == 0.5
    assert_grays(store)
    images, labels = store.read(tf.constant([3, 0]), tf.constant(LARGE))
    assert images.dtype == labels.dtype == tf.int32
    assert images.numpy()[:, 0, 0].tolist() == [40, 10]
    assert labels.numpy().tolist() == [1, 0]


def test_only_missing_sizes_are_decoded(tmp_path, monkeypatch):
    open_(make_grays(), tmp_path, [SMALL])
    watched = mock.Mock(wraps=decode)
    monkeypatch.setattr(module, "decode", watched)
    for _ in range(2):
        assert_grays(open_(make_grays(), tmp_path))
        decoded = [call.args[1] for call in watched.mock_calls]
        assert decoded == [[LARGE]] * 4


@pytest.mark.parametrize(
    ("pattern", "changes"),
    [
        *(("*.pixels", None), ("*.npz", None)),
        ("*.npz", {"labels": np.array(["0"] * 4)}),
        ("*.npz", {"labels": np.array(4)}),
        ("*.npz", {"skipped": np.array([1.5])}),
        # One size has other images than the other one.
        ("*2x3*.npz", {"labels": np.array([1, 0, 1, 0], np.int32)}),
    ],
)
def test_damaged_files_are_made_again(tmp_path, pattern, changes):
    before = open_(make_grays(), tmp_path)
    for path in tmp_path.glob(pattern):
        if changes is None:
            path.write_bytes(path.read_bytes()[:20])
        else:
            with np.load(path) as found:
                arrays = {**found, **changes}
            np.savez(path, **arrays)
    again = open_(make_grays(), tmp_path)
    assert_grays(again)
    assert again.labels.tolist() == [0, 1, 0, 1]
    assert again.digest == before.digest


def test_invalid_images(tmp_path):
    contents = [encode_gray(10), b"no image", encode_gray(30), b""]
    source = make_source(contents)
    message = (
        r"^made has images that cannot be decoded, image 1 \(no known "
        r"format\), image 3 \(no known format\): replace or remove them"
    )
    with pytest.raises(ImageError, match=message):
        open_(source, tmp_path)
    assert not list(tmp_path.iterdir())
    store = open_(source, tmp_path, invalid_images="skip")
    assert_grays(store, [10, 30])
    assert store.labels.tolist() == [0, 0]
    described = describe_skipped({"train": store, "test": store})
    assert described.startswith("4 image(s) could not be decoded: image 1 (no")
    # The files are there, but not all images are.
    for refused in (source, make_source(contents, in_memory=True)):
        with pytest.raises(ImageError, match=message):
            open_(refused, tmp_path)


def test_images_that_are_not_there(tmp_path):
    def refuse(message, contents, **fields):
        source = make_source(contents, **fields)
        with pytest.raises(ImageError, match=message):
            open_(source, tmp_path, invalid_images="skip")
        assert not list(tmp_path.iterdir())

    refuse("made has no image: look at --data_d", [])
    refuse("made has no image: look at --data_d", [], in_memory=True)
    # A file that cannot be read is no bad image.
    contents = [encode_gray(1), tmp_path / "none.png"]
    refuse(r"^cannot read image 1: No such file or directory\.$", contents)


def test_the_digest_tells_images_apart_and_not_places(tmp_path):
    digest = open_(make_grays(), tmp_path / "one", [SMALL]).digest
    moved = make_grays(version="elsewhere")
    assert open_(moved, tmp_path / "two", [LARGE]).digest == digest
    in_memory = open_(make_grays(in_memory=True), tmp_path / "none")
    assert_grays(in_memory)
    assert in_memory.digest == digest and not (tmp_path / "none").exists()
    digests = {digest}
    others = ([*GRAYS, 50], [*GRAYS[:3], 41], GRAYS[::-1], GRAYS[:3])
    for number, grays in enumerate(others):
        # Other images have files of their own.
        other = make_grays(grays, identity=f"other {number}")
        store = open_(other, tmp_path / "one")
        assert_grays(store, grays)
        digests.add(store.digest)
    assert len(digests) == 1 + len(others)


def test_a_file_that_changed_is_decoded_again(tmp_path):
    path = tmp_path / "image.png"
    for version, gray in (("1", 10), ("2", 20)):
        path.write_bytes(encode_gray(gray))
        source = make_source([path], version=version)
        assert_grays(open_(source, tmp_path), [gray])


def test_classes_without_images(tmp_path):
    source = make_source([encode_gray(1)], empty_classes=("cat",))
    with pytest.raises(ImageError, match="made has no image of cat: add some"):
        open_(source, tmp_path)
    assert len(open_(source, tmp_path, invalid_images="skip")) == 1


def test_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ImageError, match=r"cannot keep .* by --cache_dir"):
        open_(make_grays(), tmp_path / "file")


def test_labels_are_those_of_the_classes():
    def refuse(message, label):
        item = Item("image", encode_gray(1), label)
        source = Source("made", lambda: iter([item]), "made", in_memory=True)
        sizes = {"train": [SMALL]}
        with pytest.raises(ImageError, match=message):
            open_stores({"train": source}, sizes, "", classes=1, report=print)

    refuse("made has classes from 1 to 1, but the model has 1, from 0: set", 1)
    refuse("made has a class before the first one: classes count from 0", -1)
