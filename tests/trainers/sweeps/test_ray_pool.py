"""Ray's errors, the room of a cluster, and whose commands a pool awaits."""

import concurrent.futures
import types

import pytest

from tests.trainers.sweeps.files import make_job
from trainers.errors import TrainingError
from trainers.sweeps.ray_pool import RayPool
from trainers.sweeps.run_process import claim, find_claim


def make_pool(ray, jobs):
    """Makes a `RayPool` without a cluster."""
    pool = object.__new__(RayPool)
    pool._ray = ray
    pool._futures = {concurrent.futures.Future(): job for job in jobs}
    return pool


@pytest.mark.filterwarnings("ignore")
def test_errors_of_ray(tmp_path):
    ray = pytest.importorskip("ray")
    pool = make_pool(ray, [make_job(tmp_path)] * 2)
    lost, gone = pool._futures
    lost.set_exception(ray.exceptions.WorkerCrashedError())
    ((_, record),) = pool.wait(1)
    assert record["lost"].startswith("WorkerCrashedError: ")
    gone.set_exception(ray.exceptions.LocalRayletDiedError())
    with pytest.raises(TrainingError, match="is gone: run the same command"):
        pool.wait(1)


def test_a_pool_waits_for_its_own_commands_alone(tmp_path):
    own, other, _ = jobs = [
        make_job(tmp_path, name=name) for name in ("own", "other", "queued")
    ]
    pool = make_pool(types.SimpleNamespace(shutdown=lambda: None), jobs)
    pool._stop = tmp_path / "stop-own"
    with claim(find_claim(other), {"stop": ""}):
        with claim(find_claim(own), {"stop": str(pool._stop)}):
            assert pool._count_running() == 1
        pool.stop()
        # It may be about to write whose it is.
        find_claim(other).write_text("")
        assert pool._count_running() == 1
    assert not pool._stop.exists()
