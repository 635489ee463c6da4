import numpy as np
import pytest
import tensorflow as tf

from datasets.images import store as module
from datasets.images.source import ImageError, Item, Source
from datasets.images.store import describe_skipped, open_store, open_stores
from tests.datasets.images.awkward import encode_gray, make_source

SMALL, LARGE = (2, 3), (7, 5)
GRAYS = [10, 20, 30, 40]


@pytest.fixture
def source():
    return make_source([encode_gray(gray) for gray in GRAYS])


def open_(source, directory, sizes=(SMALL, LARGE), lines=None, **options):
    report = [].append if lines is None else lines.append
    return open_store(source, list(sizes), directory, report=report, **options)


def assert_grays(store, grays=GRAYS):
    for size, images in store.images.items():
        assert images.shape == (len(grays), *size)
        np.testing.assert_array_equal(
            images,
            np.broadcast_to(np.array(grays)[:, None, None], images.shape),
        )


def test_images_of_all_sizes(source, tmp_path):
    lines = []
    store = open_(source, tmp_path / "new" / "directory", lines=lines)
    assert len(store) == 4 and not store.skipped
    assert store.labels.tolist() == [0, 1, 0, 1]
    assert store.majority == 0.5
    assert_grays(store)
    assert lines[-1].startswith("made: decoded 4 of 4 images, ")
    images, labels = store.read(tf.constant([3, 0]), tf.constant(LARGE))
    assert images.dtype == labels.dtype == tf.int32
    assert images.numpy()[:, 0, 0].tolist() == [40, 10]
    assert labels.numpy().tolist() == [1, 0]


def test_memory_instead_of_files(source, tmp_path):
    source = make_source([encode_gray(gray) for gray in GRAYS], in_memory=True)
    assert_grays(open_(source, tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_only_missing_sizes_are_decoded(source, tmp_path, monkeypatch):
    open_(source, tmp_path, [SMALL])
    decoded = []
    real = module.decode
    monkeypatch.setattr(
        module,
        "decode",
        lambda c, sizes: decoded.append(sizes) or real(c, sizes),
    )
    assert_grays(open_(source, tmp_path))
    assert decoded == [[LARGE]] * 4
    assert_grays(open_(source, tmp_path))
    assert len(decoded) == 4


@pytest.mark.parametrize("suffix", ["pixels", "npz"])
@pytest.mark.parametrize("kept", [0, 20])
def test_files_that_were_cut_short_are_made_again(
    source, tmp_path, suffix, kept
):
    open_(source, tmp_path)
    for path in tmp_path.glob(f"*.{suffix}"):
        path.write_bytes(path.read_bytes()[:kept])
    assert_grays(open_(source, tmp_path))


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": np.array(["0"] * 4)},
        {"labels": np.arange(4) * 1j},
        {"labels": np.array(4)},
        {"skipped": np.array([1.5])},
        None,
    ],
)
def test_arrays_of_another_kind_are_made_again(source, tmp_path, changes):
    before = open_(source, tmp_path)
    for path in tmp_path.glob("*.npz"):
        with np.load(path) as found:
            arrays = {**found, **(changes or {})}
        with path.open("wb") as file:
            if changes is None:
                np.save(file, arrays["labels"])
            else:
                np.savez(file, **arrays)
    np.testing.assert_array_equal(open_(source, tmp_path).labels, before.labels)


def test_other_images_have_files_of_their_own(source, tmp_path):
    open_(source, tmp_path)
    other = make_source([encode_gray(70)], identity="others")
    assert_grays(open_(other, tmp_path), [70])
    assert_grays(open_(source, tmp_path))


def test_bad_images(tmp_path):
    contents = [encode_gray(10), b"no image", encode_gray(30), b""]
    source = make_source(contents)
    message = (
        r"^made has images that cannot be decoded, image 1 \(no known "
        r"format\), image 3 \(no known format\): replace or remove them"
    )
    with pytest.raises(ImageError, match=message):
        open_(source, tmp_path)
    assert not list(tmp_path.iterdir())
    store = open_(source, tmp_path, bad_images="skip")
    assert_grays(store, [10, 30])
    assert store.labels.tolist() == [0, 0]
    assert [name[:7] for name in store.skipped] == ["image 1", "image 3"]
    stores = {"train": store, "test": store}
    assert describe_skipped(stores) == (
        "4 image(s) could not be decoded: image 1 (no known format), "
        "image 3 (no known format), image 1 (no known format) and 1 more."
    )
    # The files are there, but not all images are.
    with pytest.raises(ImageError, match=message):
        open_(source, tmp_path)
    assert describe_skipped({}) == ""


@pytest.mark.parametrize("in_memory", [True, False])
def test_no_image_is_left(tmp_path, in_memory):
    source = make_source([b""], in_memory=in_memory)
    with pytest.raises(ImageError, match="made has no image"):
        open_(source, tmp_path, bad_images="skip")
    assert not list(tmp_path.iterdir())


def test_a_size_with_other_images_is_decoded_again(source, tmp_path):
    open_(source, tmp_path, [SMALL])
    (names,) = tmp_path.glob("*.npz")
    with np.load(names) as found:
        np.savez(names, **{**found, "labels": found["labels"][::-1]})
    assert_grays(open_(source, tmp_path))
    assert open_(source, tmp_path).labels.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("bad_images", ["refuse", "skip"])
def test_a_file_that_cannot_be_read_is_no_bad_image(tmp_path, bad_images):
    source = make_source([encode_gray(1), tmp_path / "none.png"])
    message = r"^cannot read image 1: No such file or directory\.$"
    with pytest.raises(ImageError, match=message):
        open_(source, tmp_path, bad_images=bad_images)
    assert not list(tmp_path.iterdir())


def test_the_digest_tells_images_apart_and_not_places(source, tmp_path):
    digest = open_(source, tmp_path / "one", [SMALL]).digest
    moved = make_source([encode_gray(g) for g in GRAYS], version="elsewhere")
    assert open_(moved, tmp_path / "two", [LARGE]).digest == digest
    in_memory = make_source([encode_gray(g) for g in GRAYS], in_memory=True)
    assert open_(in_memory, tmp_path).digest == digest
    others = ([*GRAYS, 50], [*GRAYS[:3], 41], GRAYS[::-1], GRAYS[:3])
    digests = {digest}
    for number, grays in enumerate(others):
        for kept in ({}, {"in_memory": True}):
            other = make_source(list(map(encode_gray, grays)), **kept)
            digests.add(open_(other, tmp_path / str(number)).digest)
    assert len(digests) == 1 + len(others)


def test_the_digest_is_that_of_the_images_that_were_decoded(tmp_path):
    path, digests = tmp_path / "image.png", []
    for version, content in (("1", encode_gray(1)), ("2", encode_gray(2))):
        path.write_bytes(content)
        source = make_source([path], version=version)
        digests.append(open_(source, tmp_path, [SMALL]).digest)
        # Other sizes of the same images.
        digests.append(open_(source, tmp_path, [LARGE]).digest)
    assert len(set(digests)) == 2 and digests[0] == digests[1]


def test_files_of_an_earlier_version_are_made_again(source, tmp_path):
    digest = open_(source, tmp_path, [SMALL]).digest
    (names,) = tmp_path.glob("*.npz")
    with np.load(names) as found:
        kept = {name: found[name] for name in ("labels", "skipped")}
    np.savez(names, **kept)
    assert open_(source, tmp_path, [SMALL]).digest == digest


def test_classes_without_images(tmp_path):
    names = ("cat", "dog", "emu", "fox")
    source = make_source([encode_gray(1)], empty_classes=names)
    message = "made has no image of cat, dog, emu and 1 more: add some"
    with pytest.raises(ImageError, match=message):
        open_(source, tmp_path)
    assert len(open_(source, tmp_path, bad_images="skip")) == 1


def test_a_directory_that_cannot_be_written(source, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ImageError, match=r"cannot keep .* by --cache_dir"):
        open_(source, tmp_path / "file")


def test_labels_beyond_the_classes(source, tmp_path):
    options = {"report": print, "bad_images": "refuse"}
    sources, sizes = {"train": source}, {"train": [SMALL]}
    found = open_stores(sources, sizes, tmp_path, classes=2, **options)
    assert_grays(found["train"])
    message = "made has classes from 0 to 1, but the model has 1, from 0: set "
    with pytest.raises(ImageError, match=message):
        open_stores(sources, sizes, tmp_path, classes=1, **options)


def test_labels_that_count_from_0_where_the_first_is_1(tmp_path):
    item = Item("image", encode_gray(1), -1)
    source = Source("made", lambda: iter([item]), "made", in_memory=True)
    message = "made has a class before the first one: classes count from 0, "
    with pytest.raises(ImageError, match=message):
        open_stores(
            {"train": source}, {"train": [SMALL]}, "", classes=2, report=print
        )
