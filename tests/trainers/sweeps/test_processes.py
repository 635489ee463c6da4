"""Sweeps that are killed, stopped, or work on the same runs."""

import json
import signal
import time

import pytest

from tests.shell import wait_for
from tests.trainers.sweeps.fake_sweep import Sweep, find_runs

pytestmark = pytest.mark.process


def count_starts(root):
    paths = find_runs(root, "starts")
    return [len(path.read_text().split()) for path in paths]


def assert_each_step_once(root):
    """Asserts that all runs are finished and that no step ran twice."""
    assert len(find_runs(root, "results.json")) == 6
    for path in find_runs(root, "steps"):
        assert path.read_text().split() == ["1", "2", "3", "4", "5"]
    assert not list((root / "running").iterdir())


def wait_for_runs(root, count):
    wait_for(lambda: len(find_runs(root, "steps")) >= count)


@pytest.mark.parametrize(
    ("flag", "saved"), [("--jobs=2", 2), ("--engine=ray", 1)]
)
def test_a_stopped_sweep_saves_its_runs_and_resumes(tmp_path, flag, saved):
    if flag == "--engine=ray":
        pytest.importorskip("ray")
    root = tmp_path / "root"
    sweep = Sweep(root, flag, fake="--pause=0.6")
    wait_for_runs(root, 2)
    sweep.send(signal.SIGTERM)
    output = sweep.end(128 + signal.SIGTERM)
    assert "run the same command again to resume" in output
    assert "runs that save their states: " in output
    logs = [path.read_text() for path in root.glob("runs/*.log")]
    assert "".join(logs).count("saved") >= saved
    assert not list((root / "running").iterdir())
    assert "all 6 runs are finished" in Sweep(root, "--jobs=6").end()
    assert_each_step_once(root)
    # The second run continues the first.
    flags = [
        json.loads(path.read_text())["flags"]
        for path in find_runs(root, "results.json")
    ]
    sources = [flag.get("initialize_from") for flag in flags]
    assert sources[1] == flags[0]["workdir"]
    assert not any(sources[:1] + sources[2:])


def test_runs_run_on_without_their_sweep_and_not_twice(tmp_path):
    root, go = tmp_path / "root", tmp_path / "go"
    sweep = Sweep(root, "--jobs=2", fake=f"--waits={go}")
    wait_for_runs(root, 2)
    sweep.send(signal.SIGKILL)
    sweep.end(-signal.SIGKILL)
    sweep = Sweep(root, "--jobs=2")
    sweep.wait_for(lambda: "2 of a killed sweep still running" in sweep.output)
    # They are the two jobs.
    time.sleep(1.5)
    assert count_starts(root) == [1, 1]
    go.touch()
    assert "all 6 runs are finished" in sweep.end()
    assert count_starts(root) == [1] * 6
    assert_each_step_once(root)


def test_a_run_of_each_row_is_measured_and_then_resumed(tmp_path):
    root, measure = tmp_path / "root", ("--measure", "--jobs=2")
    output = Sweep(root, *measure, fake="--pause=1").end()
    assert output.count("measuring row: ") == 1
    assert "estimated time, with one run after the other: " in output
    assert len(find_runs(root, "steps")) == 1
    assert not find_runs(root, "results.json")
    assert "measuring" not in Sweep(root, *measure).end()


def test_shards_and_a_whole_sweep_at_once_run_each_run_once(tmp_path):
    root = tmp_path / "Läufe 実験"
    shards = [Sweep(root, f"--shard={n}/2", fake="--pause=0.2") for n in (0, 1)]
    whole = Sweep(root, "--jobs=2", fake="--pause=0.2")
    # A run that continues another one is in the same shard.
    for shard, count in zip(shards, (4, 2), strict=True):
        assert f"all {count} runs are finished" in shard.end()
    assert "all 6 runs are finished" in whole.end()
    assert_each_step_once(root)
    assert count_starts(root) == [1] * 6


def test_failed_runs_are_retried_on_request(tmp_path):
    root = tmp_path / "root"
    # The second run continues the first, and is not started.
    for _ in range(2):
        output = Sweep(root, "--jobs=3", fake="--fails=3").end(1)
        assert "this went wrong" in output
        assert count_starts(root) == [1] * 5
    Sweep(root, "--retry_failed", "--jobs=2").end()
    assert_each_step_once(root)
