"""Faults that change files: damaged ones, and those of another run."""

import random

import numpy as np
import pytest

from benchmarks.faults.damage import append_nul_bytes, damage_checkpoint
from benchmarks.faults.foreign_files import place_foreign_file
from benchmarks.faults.run import Failure
from benchmarks.faults.run_files import read_metrics
from tests.benchmarks.faults.toy import EndedProcess, save, write_metrics


def damage_in_many_ways(run, fault, prepare, seeds=range(20)):
    """Prepares and damages a run with many seeds; yields how."""
    for seed in seeds:
        run.rng = random.Random(seed)
        before = prepare()
        yield fault(run, EndedProcess(-9)), before


def test_the_newest_checkpoint_is_damaged_in_two_ways(run):
    older, newest = (save(run.path, step, step) for step in (4, 12))
    whole = [file.read_bytes() for file in (older, newest)]
    found = set()
    ways = damage_in_many_ways(
        run, damage_checkpoint, lambda: newest.write_bytes(whole[1])
    )
    for how, _ in ways:
        after = newest.read_bytes()
        assert older.read_bytes() == whole[0] and run.is_damaged(newest)
        if how == "cut short":
            assert whole[1].startswith(after) and after != whole[1]
        else:
            pair = (np.frombuffer(text, "u1") for text in (after, whole[1]))
            assert np.not_equal(*pair).sum() == 1
        found.add(how)
    assert found == {"cut short", "a byte changed"}


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        (
            (2, 4, 6),
            {
                "NUL bytes appended": [2, 4, 6],
                "the last line cut, NUL bytes appended": [2, 4],
            },
        ),
        # Lines before a checkpoint are on disk.
        ((2, 4), {"NUL bytes appended": [2, 4]}),
    ],
)
def test_metrics_end_with_nul_bytes(run, steps, left):
    save(run.path, 4, 4)
    file, found = run.path / "metrics.csv", {}

    def prepare():
        write_metrics(run.path, *steps)
        return file.read_bytes()

    for how, before in damage_in_many_ways(run, append_nul_bytes, prepare):
        after = file.read_bytes()
        assert after.endswith(b"\0") and before.startswith(after.rstrip(b"\0"))
        found[how] = [int(row[0]) for row in read_metrics(run.path)]
    assert found == left


@pytest.fixture
def foreign(run, tmp_path):
    """A run with files of its own, and another one to take files from."""
    other = tmp_path / "other"
    for path, weight in ((run.path, 4), (other, 40)):
        save(path, weight, weight)
        write_metrics(path, weight)
        (path / "config.json").write_text(f'{{"seed": {weight}}}')
    (other / "results.json").write_text("{}")
    run.reference.foreign["seed"] = other
    return run


@pytest.mark.parametrize(
    "fault", [damage_checkpoint, append_nul_bytes, place_foreign_file]
)
def test_a_finished_run_and_one_without_files_stay(foreign, fault):
    (foreign.path / "results.json").write_text("{}")
    before = read(foreign.path)
    assert fault(foreign, EndedProcess(0)) is None
    assert read(foreign.path) == before
    for file in before:
        file.unlink()
    assert fault(foreign, EndedProcess(-9)) is None
    assert not read(foreign.path) and not foreign.damaged


def read(path):
    files = path.rglob("*")
    return {file: file.read_bytes() for file in files if file.is_file()}


def refuse(run, own):
    """Refuses a run as a trainer does if its own files are not there."""
    now = read(run.path)
    (file,) = {f for f in own.keys() | now.keys() if own.get(f) != now.get(f)}
    message = f"{file} is of a run with another configuration"
    if file.name == "config.json":
        message = f"{run.path} holds a run with another configuration"
    if file not in now:
        message = "metrics.csv belongs to a run, but there is no config.json"
    return EndedProcess(2, f"error: {message}: choose another.\n")


def test_every_foreign_file_is_refused_and_removed(foreign, monkeypatch):
    own, found = read(foreign.path), set()
    monkeypatch.setattr(foreign, "start", lambda: refuse(foreign, own))
    ways = damage_in_many_ways(
        foreign, place_foreign_file, lambda: None, range(30)
    )
    for how, _ in ways:
        found.add(how)
        assert read(foreign.path) == own
    assert found == {
        "checkpoint of another seed refused",
        "config.json of another seed refused",
        "results.json of another seed refused",
        "no config.json refused",
    }


@pytest.mark.parametrize(
    ("status", "output"),
    [
        (0, ""),
        (2, "error: something else\n"),
        (2, "Traceback (most recent call last):\n"),
    ],
)
def test_a_foreign_file_that_is_used(foreign, monkeypatch, status, output):
    ended = EndedProcess(status, output)
    monkeypatch.setattr(foreign, "start", lambda: ended)
    with pytest.raises(Failure, match=f"status {status} with a foreign"):
        place_foreign_file(foreign, EndedProcess(-9))


def test_a_refusal_that_changes_files(foreign, monkeypatch):
    own = read(foreign.path)

    def start():
        process = refuse(foreign, own)
        write_metrics(foreign.path, 4, 6)
        return process

    monkeypatch.setattr(foreign, "start", start)
    with pytest.raises(Failure, match="a start changed files and then said"):
        place_foreign_file(foreign, EndedProcess(-9))
