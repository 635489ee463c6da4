import os
import pathlib
import uuid

import pytest

from datasets.files import hash_file, no_links, write_whole


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "file"
    with write_whole(path) as file, write_whole(path) as other:
        file.write(b"abc")
        other.write(b"abcd")
        assert not path.exists()
    assert path.read_bytes() == b"abc"
    with pytest.raises(KeyboardInterrupt), write_whole(path) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"abc"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_beside_is_not_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr("uuid.uuid4", lambda: uuid.UUID(int=0))
    (tmp_path / f"file.{'0' * 32}.partial").touch()
    with pytest.raises(FileExistsError), write_whole(tmp_path / "file"):
        pass


def test_no_pipe_or_device_is_opened(tmp_path):
    # Opening it would wait, too.
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", pathlib.Path("/dev/zero")):
        with pytest.raises(OSError, match="it is not a regular file"):
            hash_file(odd)


def test_no_link_is_followed(tmp_path):
    link, message = tmp_path / "link", "link is a symbolic link: remove it"
    link.symlink_to(tmp_path / "target")
    with (
        pytest.raises(OSError, match=message),
        open(link, "wb", opener=no_links),
    ):
        pass
    assert not (tmp_path / "target").exists()
