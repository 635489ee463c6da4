"""Sweeps that are killed, stopped, or work on the same runs."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.checkout import ROOT
from tests.trainers.toy import TOY

SWEEP = "tests.trainers.sweeps.fake_sweep"
RUNS = 6

pytestmark = [
    pytest.mark.process,
    # Ray's, which does not close all files of a cluster.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]


def start(root, *flags, runs=RUNS, fake="", module=None):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "FAKE_RUNS": str(runs),
        "FAKE_FLAGS": fake,
        "FAKE_NODE": f"{root}-node",
    }
    grid = [] if module else ["--grid=fake"]
    return subprocess.Popen(
        [
            *(sys.executable, "-m", module or SWEEP),
            *(*grid, f"--root={root}", *flags),
        ],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Where the tests run in the background, a shell has them ignore it.
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.default_int_handler
        ),
    )


def end(process, status=0, timeout=300):
    output, _ = process.communicate(timeout=timeout)
    assert process.returncode == status, output
    return output


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def find_runs(root, name="*"):
    return sorted(root.glob(f"runs/*/{name}"))


def assert_each_step_once(root, runs=RUNS, steps=5):
    """Asserts that all runs are finished and that no step ran twice."""
    assert len(find_runs(root, "results.json")) == runs
    for path in find_runs(root, "steps"):
        assert path.read_text().split() == [str(n + 1) for n in range(steps)]
    assert not list((root / "running").iterdir())


def count_starts(root):
    return [len(path.read_text().split()) for path in find_runs(root, "starts")]


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)],
)
def test_a_stopped_sweep_saves_its_runs_and_resumes(tmp_path, number):
    sweep = start(tmp_path, "--jobs=2", fake="--pause=0.5")
    wait_for(lambda: len(find_runs(tmp_path, "steps")) == 2)
    sweep.send_signal(number)
    output = end(sweep, 128 + number)
    assert "run the same command again to resume" in output
    logs = "".join(p.read_text() for p in tmp_path.glob("runs/*.log"))
    assert logs.count("saved") == 2
    assert "runs that save their states: 2" in output
    assert "all 6 runs are finished" in end(start(tmp_path, "--jobs=6"))
    assert_each_step_once(tmp_path)


@pytest.mark.slow
def test_a_second_signal_does_not_wait_for_the_runs_that_save(tmp_path):
    go = tmp_path / "go"
    sweep = start(tmp_path, "--jobs=2", runs=2, fake=f"--waits={go}")
    wait_for(lambda: len(find_runs(tmp_path, "steps")) == 2)
    sweep.send_signal(signal.SIGINT)
    read_until(sweep, "runs that save their states: 2")
    sweep.send_signal(signal.SIGINT)
    assert end(sweep, 130) == "error: stopped by SIGINT.\n"
    # They save without the sweep, and the next one waits for that.
    sweep = start(tmp_path, "--jobs=2", runs=2)
    read_until(sweep, "2 of a killed sweep still running")
    go.touch()
    assert "all 2 runs are finished" in end(sweep)
    logs = "".join(p.read_text() for p in tmp_path.glob("runs/*.log"))
    assert logs.count("saved") == 2
    assert_each_step_once(tmp_path, runs=2)
    assert count_starts(tmp_path) == [2, 2]


def read_until(process, text):
    """Reads lines of a process up to one with a text."""
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"it has ended without {text!r}")


def test_runs_of_a_killed_sweep_run_on_and_are_not_run_twice(tmp_path):
    go = tmp_path / "go"
    sweep = start(tmp_path, "--jobs=2", fake=f"--waits={go}")
    wait_for(lambda: len(find_runs(tmp_path, "steps")) == 2)
    sweep.kill()
    end(sweep, -signal.SIGKILL)
    sweep = start(tmp_path, "--jobs=2")
    read_until(sweep, "2 of a killed sweep still running")
    # They are the two jobs.
    time.sleep(3)
    assert len(find_runs(tmp_path, "starts")) == 2
    go.touch()
    assert "all 6 runs are finished" in end(sweep)
    assert_each_step_once(tmp_path)
    assert count_starts(tmp_path) == [1] * RUNS


def test_a_run_of_each_row_is_measured_and_then_resumed(tmp_path):
    measure = ("--measure=true", "--jobs=2")
    output = end(start(tmp_path, *measure, fake="--pause=1"))
    assert output.count("measuring row: ") == 1
    assert "Fake, small: 6 missing" in output
    assert "estimated time, with one run after the other: " in output
    assert len(find_runs(tmp_path, "steps")) == 1
    assert not find_runs(tmp_path, "results.json")
    assert "measuring" not in end(start(tmp_path, *measure))
    end(start(tmp_path))
    assert_each_step_once(tmp_path)


def test_a_killed_run_is_resumed(tmp_path):
    sweep = start(tmp_path, "--jobs=1", runs=1, fake="--pause=1")
    (running,) = wait_for_running(tmp_path, 1)
    children = subprocess.run(
        ["pgrep", "-P", str(sweep.pid)], capture_output=True, text=True
    ).stdout.split()
    assert running and len(children) == 1
    os.kill(int(children[0]), signal.SIGKILL)
    output = end(sweep)
    assert "lost, to be resumed" in output
    assert "exit status -9" in output
    assert_each_step_once(tmp_path, runs=1)
    assert count_starts(tmp_path) == [2]


def wait_for_running(root, count):
    wait_for(lambda: len(find_runs(root, "steps")) >= count)
    return list((root / "running").iterdir())


def test_two_sweeps_at_once_run_each_run_once(tmp_path):
    sweeps = [start(tmp_path, "--jobs=2", fake="--pause=0.3") for _ in "ab"]
    for sweep in sweeps:
        assert "all 6 runs are finished" in end(sweep)
    assert_each_step_once(tmp_path)
    assert count_starts(tmp_path) == [1] * RUNS


def test_shards_together_run_each_run_once(tmp_path):
    # The variables of the examples in docs/guides/sweeps.md.
    root = tmp_path / "Läufe 実験"
    for index in "01":
        output = end(start(root, f"--shard={index}/2"))
        assert "all 3 runs are finished" in output
    assert_each_step_once(root)
    assert count_starts(root) == [1] * RUNS


def test_failed_runs_are_listed_and_retried_on_request(tmp_path):
    output = end(start(tmp_path, runs=2, fake="--fails=3"), 1)
    assert output.count("this went wrong") == 4
    assert "error: 2 runs failed, see above" in output
    for path in find_runs(tmp_path, "starts"):
        (path.parent / "mended").touch()
    output = end(start(tmp_path, runs=2, fake="--fails=3"), 1)
    assert "--retry_failed=true" in output
    assert count_starts(tmp_path) == [1, 1]
    end(start(tmp_path, "--retry_failed=true", runs=2, fake="--fails=3"))
    assert_each_step_once(tmp_path, runs=2)


@pytest.mark.slow
def test_a_trainer_is_killed_and_resumed_and_then_skipped(tmp_path):
    """Two real runs, one of which continues the other."""
    toy = {**TOY, "steps": 60, "steps_per_loop": 5, "checkpoint_every": 5}
    del toy["task"], toy["encoding"]
    flags = ",".join(f"{name}={value}" for name, value in toy.items())
    command = (
        tmp_path,
        *("--grid=ruoss_figure_2", "--jobs=1", f"--flags={flags}"),
    )
    sweep = start(*command, module="trainers.sweep")
    wait_for(lambda: find_runs(tmp_path, "checkpoints/checkpoint-*"))
    sweep.terminate()
    end(sweep, 128 + signal.SIGTERM)
    output = end(start(*command, module="trainers.sweep"))
    assert "all 2 runs are finished" in output
    logs = "".join(p.read_text() for p in tmp_path.glob("runs/*.log"))
    assert "resuming after step" in logs
    results = find_runs(tmp_path, "results.json")
    assert len(results) == 2
    before = [path.stat().st_mtime_ns for path in results]
    output = end(start(*command, module="trainers.sweep"))
    assert "1/2" not in output
    assert [path.stat().st_mtime_ns for path in results] == before
    output = end(start(*command, "--dry_run=true", module="trainers.sweep"))
    assert "2 finished" in output


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    yield cluster
    cluster.shutdown()


@pytest.mark.slow
def test_ray_loses_a_node_and_gets_another(tmp_path, cluster):
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    root = tmp_path / "root"
    sweep = start(
        root,
        *("--engine=ray", f"--address={cluster.address}"),
        fake="--pause=1",
    )
    wait_for(lambda: len(find_runs(root, "steps")) == 2)
    # Not the one that the sweep is connected to, which may be any.
    own = (tmp_path / "root-node").read_text()
    nodes.sort(key=lambda node: node.node_id == own)
    cluster.remove_node(nodes[0], allow_graceful=False)
    wait_for(lambda: len(find_runs(root, "steps")) == 3)
    nodes[0] = cluster.add_node(num_cpus=1)
    output = end(sweep)
    assert "lost, to be resumed" in output
    assert "all 6 runs are finished" in output
    assert_each_step_once(root)
    for node in nodes:
        cluster.remove_node(node)


@pytest.mark.slow
def test_half_on_this_machine_and_half_on_ray(tmp_path, cluster):
    sweep = start(tmp_path, "--jobs=1", fake="--pause=0.3")
    wait_for(lambda: len(find_runs(tmp_path, "results.json")) == 3)
    sweep.terminate()
    end(sweep, 128 + signal.SIGTERM)
    node = cluster.add_node(num_cpus=2)
    ray = ("--engine=ray", f"--address={cluster.address}")
    output = end(start(tmp_path, *ray))
    assert "all 6 runs are finished" in output
    assert_each_step_once(tmp_path)
    assert count_starts(tmp_path).count(1) >= RUNS - 1
    cluster.remove_node(node)


def test_a_stopped_sweep_on_ray_saves_its_runs(tmp_path, cluster):
    node = cluster.add_node(num_cpus=2)
    ray = ("--engine=ray", f"--address={cluster.address}")
    sweep = start(tmp_path, *ray, fake="--pause=1")
    wait_for(lambda: len(find_runs(tmp_path, "steps")) == 2)
    sweep.terminate()
    end(sweep, 128 + signal.SIGTERM)
    logs = "".join(p.read_text() for p in tmp_path.glob("runs/*.log"))
    assert logs.count("saved") == 2
    end(start(tmp_path, *ray))
    assert_each_step_once(tmp_path)
    cluster.remove_node(node)


@pytest.mark.slow
def test_two_engines_at_once(tmp_path, cluster):
    node = cluster.add_node(num_cpus=2)
    ray = ("--engine=ray", f"--address={cluster.address}")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        outputs = pool.map(
            lambda flags: end(start(tmp_path, *flags, fake="--pause=0.3")),
            [ray, ["--jobs=2"]],
        )
    for output in outputs:
        assert "all 6 runs are finished" in output
    assert_each_step_once(tmp_path)
    assert count_starts(tmp_path) == [1] * RUNS
    cluster.remove_node(node)


@pytest.mark.slow
def test_a_stopped_sweep_on_ray_waits_for_its_own_runs_alone(tmp_path, cluster):
    other = start(tmp_path, "--jobs=1", fake="--pause=8")
    wait_for(lambda: len(find_runs(tmp_path, "steps")) == 1)
    node = cluster.add_node(num_cpus=1)
    ray = ("--engine=ray", f"--address={cluster.address}")
    sweep = start(tmp_path, *ray, fake="--pause=0.5")
    wait_for(lambda: len(find_runs(tmp_path, "steps")) == 2)
    sweep.terminate()
    output = end(sweep, 128 + signal.SIGTERM, timeout=60)
    assert "runs that save their states: 1" in output
    # The run of the other sweep takes 40 s.
    assert other.poll() is None
    assert len(list((tmp_path / "running").iterdir())) == 1
    other.terminate()
    end(other, 128 + signal.SIGTERM)
    end(start(tmp_path, "--jobs=6"))
    assert_each_step_once(tmp_path)
    cluster.remove_node(node)
