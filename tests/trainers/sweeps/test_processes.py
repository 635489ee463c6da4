"""Sweeps that are killed, stopped, or work on the same runs."""

import json
import signal
import time

import pytest

from tests.shell import run_python
from tests.trainers.sweeps.fake_sweep import Sweep, find_runs, wait_for
from tests.trainers.toy import TOY

pytestmark = [
    pytest.mark.process,
    # Ray's, which does not close all files of a cluster.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]


def assert_each_step_once(root, runs=6):
    """Asserts that all runs are finished and that no step ran twice."""
    assert len(find_runs(root, "results.json")) == runs
    for path in find_runs(root, "steps"):
        assert path.read_text().split() == ["1", "2", "3", "4", "5"]
    assert not list((root / "running").iterdir())


def count_starts(root):
    paths = find_runs(root, "starts")
    return sorted(len(path.read_text().split()) for path in paths)


def count_saved(root):
    logs = (path.read_text() for path in root.glob("runs/*.log"))
    return "".join(logs).count("saved")


def wait_for_runs(root, count, name="steps"):
    wait_for(lambda: len(find_runs(root, name)) >= count)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_sweep_saves_its_runs_and_resumes(tmp_path, number):
    root = tmp_path / "root"
    sweep = Sweep(root, "--jobs=2", fake="--pause=0.6")
    wait_for_runs(root, 2)
    sweep.send(number)
    output = sweep.end(128 + number)
    assert "run the same command again to resume" in output
    assert "runs that save their states: 2" in output
    assert count_saved(root) == 2
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


@pytest.mark.parametrize(
    ("number", "status", "message", "starts"),
    [
        (signal.SIGKILL, -signal.SIGKILL, "", [1] * 6),
        # They were asked to save, and do so without the sweep.
        (signal.SIGINT, 130, "stopped by SIGINT", [1] * 4 + [2] * 2),
    ],
    ids=["killed", "interrupted twice"],
)
def test_runs_run_on_without_their_sweep_and_not_twice(
    tmp_path, number, status, message, starts
):
    root, go = tmp_path / "root", tmp_path / "go"
    sweep = Sweep(root, "--jobs=2", fake=f"--waits={go}")
    wait_for_runs(root, 2)
    sweep.send(number)
    if message:
        sweep.wait_for("runs that save their states: 2")
        sweep.send(number)
    assert message in sweep.end(status)
    sweep = Sweep(root, "--jobs=2")
    sweep.wait_for("2 of a killed sweep still running")
    # They are the two jobs.
    time.sleep(1.5)
    assert count_starts(root) == [1, 1]
    go.touch()
    assert "all 6 runs are finished" in sweep.end()
    assert count_saved(root) == starts.count(2)
    assert count_starts(root) == starts
    assert_each_step_once(root)


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


def test_failed_runs_are_listed_and_retried_on_request(tmp_path):
    root, fails = tmp_path / "root", {"runs": 2, "fake": "--fails=3"}
    output = Sweep(root, **fails).end(1)
    assert "this went wrong" in output
    # The second run continues the first, and is not started.
    assert "error: 2 runs failed, see above" in output
    assert count_starts(root) == [1]
    assert "--retry_failed=true" in Sweep(root, **fails).end(1)
    assert count_starts(root) == [1]
    Sweep(root, "--retry_failed=true", runs=2).end()
    assert count_starts(root) == [1, 2]
    assert_each_step_once(root, runs=2)


def test_a_trainer_runs_and_is_then_skipped(tmp_path):
    toy = {**TOY, "steps_per_loop": 1}
    del toy["task"], toy["encoding"]
    flags = ",".join(f"{name}={value}" for name, value in toy.items())
    command = (
        *("-m", "trainers.sweep", "--grid=ruoss_figure_2", "--shard=0/2"),
        *(f"--root={tmp_path}", f"--flags={flags}"),
    )
    output = run_python(*command).stdout
    assert "all 1 runs are finished" in output
    (results,) = find_runs(tmp_path, "results.json")
    assert json.loads(results.read_text())["train"]["steps"] == 2
    output = run_python(*command, "--dry_run=true").stdout
    assert "1 finished" in output


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    yield cluster
    cluster.shutdown()


def test_a_stopped_sweep_on_ray_saves_its_own_runs(tmp_path, cluster):
    root, go = tmp_path / "root", tmp_path / "go"
    ray = ("--engine=ray", f"--address={cluster.address}")
    # Of another sweep, on this machine.
    other = Sweep(root, "--jobs=1", fake=f"--waits={go}")
    wait_for_runs(root, 1)
    node = cluster.add_node(num_cpus=1)
    sweep = Sweep(root, *ray, fake="--pause=1")
    wait_for_runs(root, 2)
    sweep.send(signal.SIGTERM)
    assert "runs that save their states: 1" in sweep.end(128 + signal.SIGTERM)
    assert other.process.is_alive()
    assert count_saved(root) == 1
    assert len(list((root / "running").iterdir())) == 1
    go.touch()
    # Both engines at once.
    for one in (Sweep(root, *ray), other):
        assert "all 6 runs are finished" in one.end()
    assert_each_step_once(root)
    assert count_starts(root) == [1] * 5 + [2]
    cluster.remove_node(node)


def test_ray_loses_a_node_and_gets_another(tmp_path, cluster):
    root = tmp_path / "root"
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    ray = ("--engine=ray", f"--address={cluster.address}")
    sweep = Sweep(root, *ray, runs=3, fake="--pause=1")
    wait_for_runs(root, 2)
    # Not the one that the sweep is connected to, which may be any.
    nodes.sort(key=lambda node: f"to {node.node_id}." in sweep.read())
    cluster.remove_node(nodes[0], allow_graceful=False)
    nodes[0] = cluster.add_node(num_cpus=1)
    output = sweep.end()
    assert "lost, to be resumed" in output
    assert "all 3 runs are finished" in output
    assert_each_step_once(root, runs=3)
    for node in nodes:
        cluster.remove_node(node)
