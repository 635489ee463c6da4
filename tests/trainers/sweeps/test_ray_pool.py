"""Ray's errors, the room of a cluster, and whose commands a pool awaits."""

import concurrent.futures
import errno
import os
import sys
import types

import pytest

from tests.trainers.sweeps.files import make_job
from trainers.errors import ConfigError, TrainingError
from trainers.sweeps.ray_pool import RayPool
from trainers.sweeps.run_process import claim, find_claim, read_claim


def test_ray_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install -e '\.\[ray\]'"):
        RayPool()


def make_future(error):
    future = concurrent.futures.Future()
    future.set_exception(error)
    return future


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
    assert "has what a run needs (1 CPU, 2 GPU): waiting" in (
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
