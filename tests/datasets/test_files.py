import os
import pathlib

import pytest

from datasets.files import hash_file, no_links, only_files, write_whole


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "file"
    with write_whole(path) as file, write_whole(path) as other:
        file.write(b"abc")
        other.write(b"abcd")
        assert not path.exists()
    assert path.read_bytes() == b"abc"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_file_leaves_the_old_one(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), write_whole(path) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_no_pipe_device_or_directory_is_opened(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    with open(tmp_path / "file", "rb", opener=only_files) as file:
        assert file.read() == b"abc"
    # Opening it would wait, too.
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", pathlib.Path("/dev/zero")):
        with pytest.raises(OSError, match="it is not a regular file"):
            hash_file(odd)
    with pytest.raises(IsADirectoryError):
        hash_file(tmp_path)


@pytest.mark.parametrize("mode", ["wb", "ab", "r+b"])
def test_no_link_is_followed(tmp_path, mode):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"mine")
    with open(target, mode, opener=no_links):
        pass
    target.write_bytes(b"mine")
    link.symlink_to(target)
    with (
        pytest.raises(OSError, match="link is a symbolic link: remove it"),
        open(link, mode, opener=no_links),
    ):
        pass
    assert target.read_bytes() == b"mine"
    # A link to a directory on the way is of no concern.
    (tmp_path / "folder").symlink_to(tmp_path)
    with open(tmp_path / "folder" / "target", mode, opener=no_links):
        pass
