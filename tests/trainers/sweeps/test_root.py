import json

import pytest

from tests.trainers.sweeps.files import (
    make_run,
    open_root,
    write_progress,
    write_record,
    write_results,
)
from trainers.errors import ConfigError
from trainers.records.claims import claim


def test_states_of_a_run(tmp_path):
    root, run = open_root(tmp_path), make_run()
    assert root.find_state(run) == "missing"
    for status, state in (
        *((-9, "missing"), (143, "missing"), (0, "missing")),
        *((127, "failed"), (1, "failed")),
    ):
        write_record(root, run, status=status)
        assert root.find_state(run) == state
    with claim(tmp_path / "running" / run.name):
        assert root.find_state(run) == "running"
        assert root.list_running() == {run.name}
    root.forget_failure(run)
    assert root.find_state(run) == "missing"
    root.write_failure(run, ["a line"])
    assert root.read_record(run)["lines"] == ["a line"]
    path = write_results(root, run) / "results.json"
    assert root.find_state(run) == "finished"
    results = json.loads(path.read_text())
    # A run of fewer steps, and one with other flags.
    for changes in ({"train": {"steps": 1}}, {"digest": "other"}):
        path.write_text(json.dumps({**results, **changes}))
        assert root.find_state(run) == "failed"


@pytest.mark.parametrize(
    ("record", "state"),
    [
        ("{", "missing"),
        ('{"status": "1", "seconds": []}', "missing"),
        ('{"status": 1, "ended": 5, "lines": "x"}', "failed"),
    ],
)
def test_a_damaged_record(record, state, tmp_path):
    root, run = open_root(tmp_path), make_run()
    path = tmp_path / "runs" / f"{run.name}.json"
    path.parent.mkdir()
    path.write_text(record)
    assert root.find_state(run) == state
    assert root.read_record(run).get("lines", []) == []


def test_a_root_that_cannot_be_read(tmp_path):
    root, run = open_root(tmp_path), make_run()
    (tmp_path / "running").touch()
    with pytest.raises(ConfigError, match="cannot tell which runs of"):
        root.find_state(run)
    path = write_results(root, run) / "results.json"
    path.write_text("{")
    with pytest.raises(ConfigError, match="or choose another --root"):
        root.find_state(run)


def test_a_root_that_was_moved_has_its_continued_runs(tmp_path):
    first = make_run()
    run = make_run(encoding="ALiBi", after=first)
    root = open_root(tmp_path / "before")
    source = f"--initialize_from={tmp_path}/before/runs/{first.name}"
    assert source in root.make_job(run).arguments
    write_results(root, first)
    write_results(root, run)
    (tmp_path / "before").rename(tmp_path / "after")
    root = open_root(tmp_path / "after")
    assert root.find_state(run) == "finished"
    assert source in root.make_job(run).arguments


def test_a_job_is_a_command_of_the_trainer(tmp_path):
    root = open_root(tmp_path, checkpoint_every=7)
    job = root.make_job(make_run(seed=5))
    assert job.arguments[0] == "trainers.algorithmic"
    assert {"--seed=5", "--checkpoint_every=7"} <= {*job.arguments}
    with pytest.raises(ConfigError, match=r"algorithmic-.*: --steps must be"):
        root.make_config(make_run(steps=0))


def test_cost(tmp_path):
    root = open_root(tmp_path)
    runs = [make_run(n, steps=100) for n in range(3)]
    other = make_run(8, steps=100, row="other")
    assert root.estimate(runs)(runs) == (0, 3)
    write_progress(root, runs[0], (10, 60.0))
    assert not root.is_measured(runs[0])
    # 0.5 s a step after the first ones.
    write_progress(root, runs[0], (10, 60.0), (20, 61.0), (30, 70.0))
    assert root.is_measured(runs[0])
    assert root.find_progress(runs[0]) == (30, 70.0)
    # And 55 s before the first ones, which every process needs.
    assert root.estimate(runs)(runs[1:]) == (2 * (55 + 50), 0)
    assert root.estimate(runs)(runs[:1]) == (55 + 35, 0)
    # Its process took 12 s more than that, to start and to save its state.
    write_record(root, runs[0], status=143, seconds=82)
    assert root.estimate(runs)(runs[1:2]) == (55 + 12 + 50, 0)
    # The runs of the row that have finished know better.
    write_record(root, runs[1], status=0, seconds=200)
    assert root.estimate(runs)(runs[2:]) == (200, 0)
    write_record(root, other, status=0, seconds=400)
    seconds = root.estimate([*runs, other])
    assert seconds(runs[2:]) == (200, 0)
    assert seconds([make_run(9, row="other", steps=10)]) == (40, 0)
    assert seconds([make_run(9, row="new", steps=10)]) == (30, 0)
    # 50 s are those of the steps, the start and the evaluation take the rest.
    write_progress(root, other, (10, 60.0), (100, 105.0))
    seconds = root.estimate([*runs, other])
    assert seconds([make_run(9, row="other", steps=10)]) == (350 + 5, 0)
    # Its record lacks the processes that no sweep has survived.
    write_record(root, other, status=0, seconds=20)
    seconds = root.estimate([*runs, other])
    assert seconds([make_run(9, row="other", steps=10)]) == (55 + 5, 0)
