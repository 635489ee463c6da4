import pytest

from datasets.files import write_whole


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
