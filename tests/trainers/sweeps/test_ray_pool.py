"""Ray's errors, the room of a cluster, and whose commands a pool awaits."""

import concurrent.futures
import os
import sys
import types

import pytest

from tests.trainers.sweeps.files import make_job
from trainers.errors import ConfigError, TrainingError
from trainers.sweeps.ray_pool import RayPool
from trainers.sweeps.run_process import claim, find_claim, read_claim


def make_pool(*nodes, ray=None, jobs=(), **needed):
    """Makes a `RayPool` on machines that a test describes."""
    pool = object.__new__(RayPool)
    pool._ray = ray or types.SimpleNamespace(
        nodes=lambda: [
            {"Alive": node.pop("alive", True), "Resources": node}
            for node in map(dict, nodes)
        ],
        shutdown=lambda: None,
    )
    pool._needed = needed
    pool._futures = {concurrent.futures.Future(): job for job in jobs}
    return pool


def test_ray_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install -e '\.\[ray\]'"):
        RayPool()


@pytest.mark.filterwarnings("ignore")
def test_errors_of_ray(tmp_path):
    ray = pytest.importorskip("ray")
    job, exceptions = make_job(tmp_path), ray.exceptions

    def wait_for(error):
        pool = make_pool(ray=ray, jobs=[job])
        next(iter(pool._futures)).set_exception(error)
        return pool.wait(1)

    ((found, record),) = wait_for(exceptions.WorkerCrashedError())
    assert found == job
    assert record["lost"].startswith("WorkerCrashedError: ")
    with pytest.raises(TrainingError, match="is gone: run the same command"):
        wait_for(exceptions.LocalRayletDiedError())
    full = exceptions.RayTaskError("run_job", "", OSError("No space left"))
    with pytest.raises(TrainingError, match="No space left"):
        wait_for(full)
    wrong = exceptions.RayTaskError("run_job", "", ValueError("wrong"))
    with pytest.raises(exceptions.RayTaskError):
        wait_for(wrong)


def test_room_is_that_of_each_machine(capsys):
    half = {"CPU": 3.0, "GPU": 1.0}
    assert (
        make_pool(half, {**half, "alive": False}, half, CPU=2).count_jobs() == 2
    )
    assert not capsys.readouterr().out
    assert make_pool(half, half, CPU=1, GPU=2).count_jobs() == 1
    message = "has what a run needs (1 CPU, 2 GPU): waiting"
    assert message in capsys.readouterr().out


def test_a_pool_waits_for_its_own_commands_alone(tmp_path, capsys):
    own, other, queued = jobs = [
        make_job(tmp_path, name=name) for name in ("own", "other", "queued")
    ]
    pool = make_pool(jobs=jobs)
    pool._stop = tmp_path / "stop-own"
    with claim(find_claim(other), {"stop": ""}):
        with claim(find_claim(own), {"stop": str(pool._stop)}):
            assert pool._count_running() == 1
        assert read_claim(find_claim(other))["process"] == os.getpid()
        assert read_claim(find_claim(queued)) is None
        pool.stop()
        # It may be about to write whose it is.
        find_claim(other).write_text("")
        assert pool._count_running() == 1
    assert not pool._stop.exists()
