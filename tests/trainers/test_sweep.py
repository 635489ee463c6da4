"""Sweeps: states of cells, costs, mistakes, and what becomes of processes."""

import concurrent.futures
import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import subprocess
import sys
import types

import pytest

from tests.trainers.toy import TOY
from trainers import sweep
from trainers.cluster import coordinator as coordinator_module
from trainers.cluster import measuring
from trainers.cluster.cell_process import (
    Job,
    claim,
    find_claim,
    is_locked,
    now,
    read_claim,
    run_job,
)
from trainers.cluster.coordinator import Coordinator
from trainers.cluster.local_pool import LocalPool
from trainers.cluster.ray_pool import RayPool
from trainers.errors import ConfigError, TrainingError
from trainers.grids.grid import Cell
from trainers.options.fields import resolve
from trainers.options.sweep import SweepConfig, parse_shard, split_flags
from trainers.records.progress import Table
from trainers.records.sweep_root import SweepRoot
from trainers.records.workdir import Workdir


def make_cell(seed=0, after=None, row="row", **flags):
    return Cell(
        trainer="algorithmic",
        flags={**TOY, "seed": seed, **flags},
        row=row,
        column="column",
        after=after,
    )


def open_root(path):
    return SweepRoot(path, arguments={}, directory=str(path), environment={})


def write_results(root, cell, *, steps=2, logged=None):
    """Writes the files of a run that has finished; returns its directory."""
    config = dataclasses.replace(
        root.make_config(cell), **root._find_source(cell)
    )
    with Workdir(root.find_workdir(cell), config, cell.trainer) as workdir:
        workdir.write_json(
            "results.json",
            {
                "trainer": cell.trainer,
                "digest": workdir.digest,
                "config": workdir.config,
                "final": {},
                "train": {"steps": steps},
            },
        )
    return workdir.path


def write_progress(root, cell, *rows):
    path = root.find_workdir(cell)
    path.mkdir(parents=True, exist_ok=True)
    lines = [f"{step},{seconds},train_loss,,0.5" for step, seconds in rows]
    text = "\n".join(["step,seconds,metric,length,value", *lines, ""])
    (path / "metrics.csv").write_text(text)


def write_record(root, cell, **record):
    path = root.find_workdir(cell).with_name(f"{cell.name}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({}, "--grid is missing: plain_and_randomized, ruoss_table_1"),
        ({"grid": "ruoss_tabel_1"}, "Did you mean ruoss_table_1"),
        ({"size": "big"}, "--size must be one of paper, small"),
        ({"shard": "8/8"}, "--shard takes a number from 0 .* got '8/8'"),
        ({"shard": "1"}, "--shard takes a number from 0"),
        ({"address": "auto"}, "--address and --tpus need --engine=ray"),
        ({"tpus": 4}, "--address and --tpus need --engine=ray"),
        ({"gpus": 1}, "--gpus needs --jobs"),
        ({"flags": "steps"}, "--flags takes names with values"),
        ({"flags": "steps=1,steps=2"}, "--flags takes names with values"),
        ({"retries": -1}, "--retries must be at least 0"),
    ],
)
def test_mistakes(flags, message):
    given = {"grid": "ruoss_table_1", **flags} if flags else {}
    with pytest.raises(ConfigError, match=message):
        resolve(SweepConfig, {}, given)


def test_ray_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install -e '\.\[ray\]'"):
        RayPool()


def test_flags_with_commas_of_their_own():
    assert parse_shard("3/8") == (3, 8)
    text = "encoding=RoPE(max_wavelength=1, x=(2,3)),test_lengths=5,6-8,steps=1"
    assert split_flags(text) == {
        "encoding": "RoPE(max_wavelength=1, x=(2,3))",
        "test_lengths": "5,6-8",
        "steps": "1",
    }
    assert split_flags("") == {}


def test_states_of_a_cell(tmp_path):
    root, cell = open_root(tmp_path), make_cell()
    assert root.find_state(cell) == "missing"
    write_record(root, cell, status=-9)
    assert root.find_state(cell) == "missing"
    write_record(root, cell, status=143)
    assert root.find_state(cell) == "missing"
    write_record(root, cell, status=1)
    assert root.find_state(cell) == "failed"
    with claim(tmp_path / "running" / cell.name):
        assert root.find_state(cell) == "running"
        assert root.list_running() == {cell.name}
    assert root.list_running() == set()
    path = write_results(root, cell)
    assert root.find_state(cell) == "finished"
    # A run of fewer steps, and one with other flags.
    write_results(root, cell, steps=1)
    assert root.find_state(cell) == "failed"
    results = json.loads((path / "results.json").read_text())
    results["train"]["steps"] = 2
    (path / "results.json").write_text(json.dumps(results))
    assert root.find_state(cell) == "finished"
    results["digest"] = "other"
    (path / "results.json").write_text(json.dumps(results))
    assert root.find_state(cell) == "failed"


@pytest.mark.parametrize(
    ("record", "state"),
    [
        ("{", "missing"),
        ("[1]", "missing"),
        ('{"status": "1", "seconds": []}', "missing"),
        ('{"status": 1}', "failed"),
        ('{"status": 1, "ended": 5, "lines": "x"}', "failed"),
    ],
)
def test_a_damaged_record(record, state, tmp_path):
    root, cell = open_root(tmp_path), make_cell()
    path = tmp_path / "cells" / f"{cell.name}.json"
    path.parent.mkdir()
    path.write_text(record)
    assert root.find_state(cell) == state
    assert root.read_record(cell).get("lines", []) == []
    job = make_job(tmp_path, name=cell.name, since="1")
    # A failure of which nobody knows the time is not one of this sweep.
    assert run_job(job)["status"] == 0
    path.write_text('{"status": 0}')
    assert run_job(job) == {"status": 0}
    (tmp_path / "cells" / cell.name / "metrics.csv").unlink()
    assert not root.is_measured(cell)


def test_a_damaged_file_of_a_run_names_the_flag_of_the_sweep(tmp_path):
    root, cell = open_root(tmp_path), make_cell()
    path = write_results(root, cell)
    (path / "results.json").write_text("{")
    with pytest.raises(ConfigError, match="or choose another --root"):
        root.find_state(cell)


def test_a_root_without_locks(tmp_path, monkeypatch):
    root, cell = open_root(tmp_path), make_cell()
    (tmp_path / "running").mkdir()
    (tmp_path / "running" / cell.name).touch()

    def refuse(file, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for look in (root.list_running, lambda: root.find_state(cell)):
        with pytest.raises(ConfigError, match=r"No locks available.*--root"):
            look()


def test_a_root_that_cannot_be_read(tmp_path):
    root, cell = open_root(tmp_path), make_cell()
    (tmp_path / "running").write_text("not a directory")
    with pytest.raises(ConfigError, match="cannot tell which cells of"):
        root.find_state(cell)
    with pytest.raises(ConfigError, match="cannot tell which cells of"):
        root.list_running()
    (tmp_path / "running").unlink()
    (tmp_path / "cells" / f"{cell.name}.json").mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot read the record of"):
        root.find_state(cell)


def test_a_root_that_was_moved_has_its_continued_runs(tmp_path):
    first = make_cell()
    cell = make_cell(encoding="ALiBi", after=first)
    root = open_root(tmp_path / "before")
    write_results(root, first)
    write_results(root, cell)
    (tmp_path / "before").rename(tmp_path / "after")
    root = open_root(tmp_path / "after")
    assert root.find_state(cell) == "finished"
    job = root.make_job(cell)
    source = tmp_path / "before" / "cells" / first.name
    assert f"--initialize_from={source}" in job.arguments


def test_a_job_is_a_command_of_the_trainer(tmp_path):
    root = SweepRoot(
        tmp_path,
        arguments={"checkpoint_every": 7},
        directory="/here",
        environment={"A": "b"},
    )
    job = root.make_job(make_cell(seed=5))
    assert job.arguments[0] == "trainers.algorithmic"
    assert {"--seed=5", "--checkpoint_every=7"} <= {*job.arguments}
    assert (job.directory, job.environment) == ("/here", {"A": "b"})
    with pytest.raises(ConfigError, match=r"algorithmic-.*: --steps must be"):
        root.make_config(make_cell(steps=0))


def test_cost(tmp_path):
    root = open_root(tmp_path)
    cells = [make_cell(n, steps=100) for n in range(3)]
    other = make_cell(8, steps=100, row="other")
    assert root.estimate(cells)(cells) == (0, 3)
    write_progress(root, cells[0], (10, 60.0))
    assert not root.is_measured(cells[0])
    # 0.5 s a step after the first ones.
    write_progress(root, cells[0], (10, 60.0), (20, 61.0), (30, 70.0))
    assert root.is_measured(cells[0])
    # And 55 s before the first ones, which every process needs.
    assert root.estimate(cells)(cells[1:]) == (2 * (55 + 50), 0)
    assert root.estimate(cells)(cells[:1]) == (55 + 35, 0)
    # Its process took 12 s more than that, to start and to save its state.
    write_record(root, cells[0], status=143, seconds=82)
    assert root.estimate(cells)(cells[1:2]) == (55 + 12 + 50, 0)
    # The cells of the row that have finished know better.
    write_record(root, cells[1], status=0, seconds=200)
    assert root.estimate(cells)(cells[2:]) == (200, 0)
    write_record(root, other, status=0, seconds=400)
    seconds = root.estimate([*cells, other])
    assert seconds(cells[2:]) == (200, 0)
    assert seconds([make_cell(9, row="other", steps=10)]) == (40, 0)
    assert seconds([make_cell(9, row="new", steps=10)]) == (30, 0)
    # Its record lacks the processes that no sweep has survived.
    write_progress(root, other, (10, 60.0), (20, 160.0))
    seconds = root.estimate([*cells, other])
    assert seconds([make_cell(9, row="other", steps=10)]) == (100, 0)


def test_cost_of_a_shorter_run(tmp_path):
    root, cell = open_root(tmp_path), make_cell(steps=100)
    write_progress(root, cell, (10, 60.0), (100, 105.0))
    write_record(root, cell, status=0, seconds=130)
    # 50 s are those of the steps, the start and the evaluation take the rest.
    seconds = root.estimate([cell])
    assert seconds([make_cell(1, steps=100)]) == (130, 0)
    assert seconds([make_cell(1, steps=10)]) == (80 + 5, 0)


def test_dry_run(tmp_path, capsys):
    flags = {"grid": "confounding_table_2", "root": str(tmp_path / "root")}
    config = resolve(
        SweepConfig, {}, {**flags, "dry_run": "true", "shard": "0/2"}
    )
    sweep.main(config)
    counts, cost, *commands, more = capsys.readouterr().out.splitlines()
    assert len(commands) == 3
    assert commands[0].startswith("missing: python -m trainers.enwik8 --")
    assert more == "1 more: --dry_run=all lists all commands"
    assert "--initialize_from=" in commands[1]
    assert counts.endswith("small: 4 missing")
    assert cost.startswith("no estimate for 4 cells: none of their trainer")
    sweep.main(dataclasses.replace(config, dry_run="all"))
    _, _, *every = capsys.readouterr().out.splitlines()
    assert every[:3] == commands
    assert len(every) == 4
    assert not (tmp_path / "root").exists()


def make_job(path, *arguments, **fields):
    known = {
        "name": "cell",
        "root": str(path),
        "arguments": ("tests.trainers.fake_trainer", "--pause=0", *arguments),
        "directory": os.getcwd(),
        "environment": {"PYTHONPATH": os.pathsep.join(sys.path)},
        "since": now(),
    }
    return Job(**{**known, **fields})


def test_a_process_and_its_record(tmp_path):
    job = make_job(tmp_path, "--fails=3", since="1")
    record = run_job(job)
    assert record["status"] == 3
    assert record["lines"] == ["this went wrong"]
    # It has failed since: another process need not try again.
    assert run_job(job) == record
    (job.workdir / "mended").touch()
    again = run_job(dataclasses.replace(job, since="9"))
    assert again["status"] == 0
    assert again["seconds"] > record["seconds"]
    # It has ended well.
    assert run_job(make_job(tmp_path, since="9")) == again
    assert (job.workdir / "starts").read_text().count("start") == 2
    assert not list((tmp_path / "running").iterdir())


def test_a_process_is_stopped_by_a_file(tmp_path):
    stop = tmp_path / "stop"
    job = make_job(tmp_path, stop=str(stop))
    stop.touch()
    assert run_job(job) == {"status": -1}
    assert not job.workdir.exists()


def test_what_another_process_runs_is_left_alone(tmp_path):
    job = make_job(tmp_path)
    with claim(tmp_path / "running" / "cell"):
        assert run_job(job) == {"busy": True}
    job.workdir.mkdir(parents=True)
    with (job.workdir / "run.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert run_job(job) == {"busy": True}
        assert is_locked(job.workdir / "run.lock")
    assert not is_locked(job.workdir / "run.lock")
    assert not is_locked(tmp_path / "nothing")


def test_what_a_killed_process_left_can_be_claimed(tmp_path):
    path = tmp_path / "running"
    path.write_text("a long text of a process that is gone" * 9)
    with claim(path) as claimed:
        assert json.loads(path.read_text())["process"] == os.getpid()
        with claim(path) as second:
            assert second is None
        assert not claimed.closed
    assert not path.exists()


def run_in_pool(monkeypatch, pool, jobs):
    """Returns the variables that a local pool gives to the commands of jobs."""
    seen = {}
    monkeypatch.setattr(
        "trainers.cluster.local_pool.run_job",
        lambda job, environment, started: (
            seen.update({job.name: environment}) or {}
        ),
    )
    for job in jobs:
        pool.submit(job)
    ended = []
    while len(ended) < len(jobs):
        ended += pool.wait(10)
    pool.stop()
    assert {job.name for job, _ in ended} == {job.name for job in jobs}
    return seen


def test_local_pool_shares_cores_and_gpus(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    monkeypatch.setattr("trainers.cluster.local_pool.count_cores", lambda: 9)
    jobs = [make_job(tmp_path, name=name) for name in "ab"]
    seen = run_in_pool(monkeypatch, LocalPool(2, gpus=2), jobs)
    for environment in seen.values():
        assert environment["TF_NUM_INTRAOP_THREADS"] == "4"
        assert environment["CUDA_VISIBLE_DEVICES"] in ("4,5", "6,7")
        assert "TF_FORCE_GPU_ALLOW_GROWTH" not in environment


def test_commands_on_the_same_gpus_take_no_more_memory_than_they_use(
    monkeypatch, tmp_path
):
    monkeypatch.delenv("TF_FORCE_GPU_ALLOW_GROWTH", raising=False)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    job = make_job(tmp_path)
    seen = run_in_pool(monkeypatch, LocalPool(1), [job])[job.name]
    assert seen["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    # As the user has set it.
    assert "XLA_PYTHON_CLIENT_PREALLOCATE" not in seen


def find_dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@contextlib.contextmanager
def orphan(root, name, **about):
    """Holds a claim as a command whose sweep was killed does."""
    path = root.path / "running" / name
    with claim(path, {"process": find_dead_process(), **about}):
        yield path


def test_orphans_are_commands_whose_sweep_is_gone(tmp_path):
    root = open_root(tmp_path)
    assert root.list_orphans() == ()
    with (
        claim(tmp_path / "running" / "own"),
        orphan(root, "other machine", host="elsewhere"),
        orphan(root, "orphan") as path,
    ):
        assert root.list_orphans() == (path,)
    assert root.list_orphans() == ()


def test_orphans_count_as_jobs(monkeypatch, tmp_path):
    monkeypatch.setattr("trainers.cluster.local_pool.SECONDS", 0.01)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    root = open_root(tmp_path)
    jobs = [make_job(tmp_path, name=name) for name in "ab"]
    with orphan(root, "orphan", devices="4"):
        pool = LocalPool(2, gpus=1, orphans=root.list_orphans())
        assert "1 of a killed sweep still running" in pool.describe
        seen = run_in_pool(monkeypatch, pool, jobs)
    assert {e["CUDA_VISIBLE_DEVICES"] for e in seen.values()} == {"5"}
    with orphan(root, "orphan"):
        pool = LocalPool(1, orphans=root.list_orphans())
        pool.submit(make_job(tmp_path, name="c"))
        assert pool.wait(0.2) == []
    assert pool.wait(60)[0][0].name == "c"
    pool.stop()


def test_more_gpus_than_there_are(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    with pytest.raises(ConfigError, match=r"3 jobs with 2 .* need 6 .* has 4"):
        LocalPool(3, gpus=2)


def make_future(error):
    future = concurrent.futures.Future()
    future.set_exception(error)
    return future


def test_files_that_cannot_be_written_end_the_sweep(tmp_path):
    (tmp_path / "cells").write_text("not a directory")
    pool = LocalPool(1)
    pool.submit(make_job(tmp_path))
    with pytest.raises(TrainingError, match="cannot run cell below"):
        while not pool.wait(10):
            pass
    pool.stop()


@pytest.mark.filterwarnings("ignore")
def test_errors_of_ray(tmp_path):
    ray = pytest.importorskip("ray")
    pool = object.__new__(RayPool)
    pool._ray, job = ray, make_job(tmp_path)

    def wait_for(error):
        pool._futures = {make_future(error): job}
        return pool.wait(1)

    lost = wait_for(ray.exceptions.WorkerCrashedError())
    ((found, record),) = lost
    assert found == job
    assert record["lost"].startswith("WorkerCrashedError: ")
    with pytest.raises(TrainingError, match="is gone: run the same command"):
        wait_for(ray.exceptions.LocalRayletDiedError())
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    error = ray.exceptions.RayTaskError("run_job", "", full)
    with pytest.raises(TrainingError, match="No space left on device"):
        wait_for(error)


def make_ray_pool(*nodes, **needed):
    """Makes a `RayPool` on machines that a test describes."""
    pool = object.__new__(RayPool)
    pool._ray = types.SimpleNamespace(
        nodes=lambda: [
            {"Alive": node.pop("alive", True), "Resources": node}
            for node in map(dict, nodes)
        ],
        shutdown=lambda: None,
    )
    pool._needed, pool._futures = needed, {}
    return pool


def test_room_on_ray_is_that_of_each_machine(capsys):
    half = {"CPU": 3.0, "GPU": 1.0}
    pool = make_ray_pool(half, {**half, "alive": False}, half, CPU=2)
    assert pool.count_jobs() == 2
    assert not capsys.readouterr().out
    pool = make_ray_pool(half, half, CPU=1, GPU=2)
    assert pool.count_jobs() == 1
    assert "has what a cell needs (1 CPU, 2 GPU): waiting" in (
        capsys.readouterr().out
    )


def test_ray_waits_for_its_own_commands_alone(tmp_path, capsys):
    pool = make_ray_pool()
    pool._stop = tmp_path / "stop-own"
    names = ("own", "other", "queued")
    jobs = {name: make_job(tmp_path, name=name) for name in names}
    pool._futures = {concurrent.futures.Future(): j for j in jobs.values()}
    with claim(find_claim(jobs["other"]), {"stop": ""}):
        with claim(find_claim(jobs["own"]), {"stop": str(pool._stop)}):
            assert pool._count_running() == 1
        path = find_claim(jobs["other"])
        assert read_claim(path)["process"] == os.getpid()
        pool.stop()
        # It may be about to write whose it is.
        path.write_text("")
        assert pool._count_running() == 1
    assert not pool._stop.exists()


class FakePool:
    """Ends jobs at once, as `ends` says: lists of records by cell."""

    def __init__(self, root, ends):
        self.root, self.ends = root, ends
        self.submitted, self.order = [], []

    def submit(self, job):
        self.submitted.append(job)
        self.order.append(job.name)

    def wait(self, seconds):
        ended = [(job, self.ends[job.name].pop(0)) for job in self.submitted]
        self.submitted = []
        for job, record in ended:
            if record.get("status") == 0:
                self.root.done.add(job.name)
        return ended


class FakeRoot(SweepRoot):
    done = frozenset()

    def is_finished(self, cell):
        return cell.name in self.done


GOOD = {"status": 0, "seconds": 1.0}


def coordinate(tmp_path, ends, *, retries=2, pool=FakePool):
    """Runs cells whose processes end as pairs say; all else is real."""
    root = FakeRoot(tmp_path, arguments={}, directory="", environment={})
    root.done = set()
    pool = pool(root, {cell.name: records for cell, records in ends})
    cells = tuple(cell for cell, _ in ends)
    made = Coordinator(
        *(root, pool, cells), jobs=2, retries=retries, table=Table()
    )
    made.run()
    return made, pool


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch):
    monkeypatch.setattr(coordinator_module, "SECONDS", 0.01)
    monkeypatch.setattr(coordinator_module, "LOOK_AGAIN", 0.02)


def test_lost_cells_are_resumed_so_many_times(tmp_path, capsys):
    lost = {"lost": "NodeDiedError"}
    cell, other = make_cell(0), make_cell(1)
    ends = [(cell, [lost, {"status": -9}, GOOD]), (other, [lost] * 3)]
    made, pool = coordinate(tmp_path, ends)
    assert made.finished == {cell.name}
    assert made.failed == {other.name: ["lost 3 times: NodeDiedError"]}
    assert pool.order.count(other.name) == 3
    assert "lost, to be resumed" in capsys.readouterr().out
    # It counts as failed from now on.
    assert open_root(tmp_path).find_state(other) == "failed"


def test_busy_cells_are_looked_at_again(tmp_path):
    cell = make_cell()
    ends = [(cell, [{"busy": True}, {"busy": True}, GOOD])]
    made, pool = coordinate(tmp_path, ends)
    assert made.finished == {cell.name}
    assert len(pool.order) == 3


def test_cells_that_others_run_are_announced_once(tmp_path, capsys):
    cell, busy = make_cell(0), {"busy": True}
    coordinate(tmp_path, [(cell, [busy, busy, GOOD])])
    line = "waiting for 1 cells that other processes run"
    assert capsys.readouterr().out.count(line) == 1


def test_cells_that_others_run_are_not_submitted(tmp_path, monkeypatch):
    cell = make_cell()
    running = ["running", "running", "missing"]
    monkeypatch.setattr(
        FakeRoot, "find_state", lambda self, cell: running.pop(0)
    )
    _, pool = coordinate(tmp_path, [(cell, [GOOD])])
    assert not running
    assert pool.order == [cell.name]


class OneByOne(FakePool):
    """Ends one job at a time."""

    def wait(self, seconds):
        rest = self.submitted[1:]
        self.submitted = self.submitted[:1]
        ended = super().wait(seconds)
        self.submitted = rest
        return ended


def test_a_sweep_gives_up_where_cell_after_cell_fails(tmp_path):
    full = {"status": 1, "lines": ["No space left on device"]}
    ends = [full, full, full, GOOD, full, full, full, full, GOOD]
    cells = [make_cell(n) for n in range(len(ends))]
    pairs = [(c, [e]) for c, e in zip(cells, ends, strict=True)]
    # There are two jobs.
    made, _ = coordinate(tmp_path / "a", pairs, pool=OneByOne)
    assert made.gave_up
    assert len(made.failed) == 7
    assert made.finished == {cells[3].name}
    # None is left that could fail for the same reason.
    pairs = [(c, [e]) for c, e in zip(cells, ends[:-1], strict=False)]
    made, _ = coordinate(tmp_path / "b", pairs, pool=OneByOne)
    assert not made.gave_up


def test_a_cell_waits_for_the_one_it_continues(tmp_path):
    first = make_cell(0)
    second = make_cell(1, after=first)
    made, pool = coordinate(tmp_path, [(first, [GOOD]), (second, [GOOD])])
    assert pool.order == [first.name, second.name]
    bad = {"status": 2, "lines": ["a mistake"]}
    made, pool = coordinate(tmp_path / "b", [(first, [bad]), (second, [])])
    assert pool.order == [first.name]
    assert made.failed[second.name] == [f"{first.name} failed"]


def test_results_of_another_configuration_are_a_failure(tmp_path):
    cell = make_cell()

    class Blind(set):
        def add(self, name):
            pass

    root = FakeRoot(tmp_path, arguments={}, directory="", environment={})
    root.done = Blind()
    pool = FakePool(root, {cell.name: [GOOD]})
    made = Coordinator(root, pool, (cell,), jobs=1, retries=0, table=Table())
    made.run()
    assert "move it away" in made.failed[cell.name][0]


def test_failures_are_reported(tmp_path, capsys):
    root = open_root(tmp_path)
    lines = [f"line {n}" for n in range(9)]
    with pytest.raises(TrainingError, match="1 cells failed"):
        sweep._report_failures(root, {"cell": lines})
    out = capsys.readouterr().out
    assert f"{tmp_path}/cells/cell.log" in out
    assert "line 4" in out and "line 3" not in out


def test_the_machine_is_suspected_where_the_sweep_gave_up(tmp_path, capsys):
    with pytest.raises(TrainingError, match="such as a full disk"):
        sweep._report_failures(open_root(tmp_path), {"cell": ["x"]}, True)
    assert f"{tmp_path}/cells/cell.log" in capsys.readouterr().out


class MeasuredPool(FakePool):
    """Lets cells log some steps, and remembers who was asked to stop."""

    stopped = 0

    def wait(self, seconds):
        ended = []
        for job in list(self.submitted):
            if self.ends.get(job.name):
                self.submitted.remove(job)
                ended.append((job, self.ends[job.name].pop()))
            else:
                cell = next(c for c in self.cells if c.name == job.name)
                write_progress(self.root, cell, (1, 9.0), (3, 10.0))
        return ended

    def count_jobs(self):
        return 2


def test_a_cell_of_each_row_is_measured(tmp_path, capsys):
    root = open_root(tmp_path)
    cells = [make_cell(n, row="abcd"[n // 2]) for n in range(8)]
    write_progress(root, cells[1], (1, 9.0), (3, 10.0))
    bad = cells[4]
    pools = []

    @contextlib.contextmanager
    def open_pool():
        failed = {"status": 1, "lines": ["a mistake"]}
        pool = MeasuredPool(root, {bad.name: [failed]})
        pool.cells = cells
        pools.append(pool.order)
        yield pool
        pools.append("stopped")

    measuring.measure(root, open_pool, tuple(cells))
    # One row is known, and there is room for two cells at a time.
    assert pools == [
        [cells[2].name, bad.name],
        "stopped",
        [cells[6].name],
        "stopped",
    ]
    out = capsys.readouterr().out
    assert f"measuring d: {cells[6].name}" in out
    assert f"failed: {bad.name}: a mistake" in out
    assert root.estimate(cells)([cells[2]])[1] == 0


def test_table_is_rewritten_on_a_terminal_only(monkeypatch, capsys):
    table = Table()
    table.show(["hidden"])
    table.add("seen")
    assert capsys.readouterr().out == "seen\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    table = Table()
    table.show(["one", "two" * 20])
    table.add("above")
    table.show(["three"])
    assert capsys.readouterr().out == (
        "one\n" + ("two" * 20)[:19] + "\n\033[2F\033[Jabove\nthree\n"
    )
