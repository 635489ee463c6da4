import random

import pytest

from benchmarks.faults.foreign_files import place_foreign_file
from benchmarks.faults.run import Failure
from tests.benchmarks.faults.toy import EndedProcess, save, write_metrics

ENDINGS = {
    "checkpoint of another seed refused",
    "config.json of another seed refused",
    "results.json of another seed refused",
    "no config.json refused",
}


def read(path):
    files = path.rglob("*")
    return {file: file.read_bytes() for file in files if file.is_file()}


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
    own = read(foreign.path)
    monkeypatch.setattr(foreign, "start", lambda: refuse(foreign, own))
    found = set()
    for seed in range(30):
        foreign.rng = random.Random(seed)
        found.add(place_foreign_file(foreign, EndedProcess(-9)))
        assert read(foreign.path) == own
    assert found == ENDINGS


@pytest.mark.parametrize(
    "ended",
    [
        EndedProcess(0),
        EndedProcess(2, "error: something else\n"),
        EndedProcess(2, "Traceback (most recent call last):\n"),
    ],
)
def test_a_foreign_file_that_is_used(foreign, monkeypatch, ended):
    monkeypatch.setattr(foreign, "start", lambda: ended)
    with pytest.raises(Failure, match=f"status {ended.status} with a foreign"):
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


def test_a_run_without_files_and_a_finished_one_stay(foreign):
    (foreign.path / "results.json").write_text("{}")
    assert place_foreign_file(foreign, EndedProcess(0)) is None
    (foreign.path / "results.json").unlink()
    (foreign.path / "config.json").unlink()
    assert place_foreign_file(foreign, EndedProcess(-9)) is None
