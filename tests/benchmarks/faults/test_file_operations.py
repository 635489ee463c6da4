"""A killed run, resumed, ends with the bits of an undisturbed one."""

import random

import pytest

from benchmarks.faults.file_operations import FileOperations, Killed, KilledRuns
from trainers.records.files import appending, replacing


@pytest.mark.product
def test_kills_at_operations_on_files(tmp_path):
    runs = KilledRuns(tmp_path)
    found = {runs.kill(random.Random(seed))[0] for seed in range(20)}
    assert {how for _, how in found} == {"killed", "lost power"}
    assert len(found) > 12


def replace(path, content):
    with replacing(path) as file:
        file.write(content)


def test_a_file_is_on_disk_before_it_is_renamed_and_its_name_after(tmp_path):
    with FileOperations() as operations:
        replace(tmp_path / "file", b"content")
        with appending(tmp_path / "file") as file:
            file.write("more")
    assert operations.names == [
        "open file.partial",
        "write file.partial",
        "fsync",
        "replace file",
        "unlink file.partial",
        "fsync",
        "open file",
        "write file",
        "fsync",
    ]
    assert (tmp_path / "file").read_bytes() == b"contentmore"


@pytest.mark.parametrize(
    ("fatal", "loses_power", "left"),
    [
        (0, False, {"file": b"old"}),
        (1, False, {"file": b"old", "file.partial": b"ne"}),
        (2, False, {"file": b"old", "file.partial": b"newer"}),
        (2, True, {"file": b"old", "file.partial": b""}),
        (3, True, {"file": b"old", "file.partial": b"newer"}),
        (4, True, {"file": b"newer"}),
    ],
)
def test_a_kill_leaves_the_old_content_or_the_new_one(
    tmp_path, fatal, loses_power, left
):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(Killed), FileOperations(fatal, loses_power):
        replace(tmp_path / "file", b"newer")
    assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == left
