import contextlib
import subprocess
import sys

import pytest

from tests.trainers.sweeps.files import make_job, open_root
from trainers.errors import ConfigError, TrainingError
from trainers.sweeps import local_pool
from trainers.sweeps.local_pool import LocalPool
from trainers.sweeps.run_process import claim


def run_in_pool(monkeypatch, pool, *names):
    """Returns the variables that a local pool gives to the commands of jobs."""
    seen = {}

    def run_job(job, environment, started):
        seen[job.name] = environment
        return {}

    monkeypatch.setattr(local_pool, "run_job", run_job)
    for name in names:
        pool.submit(make_job("", name=name))
    ended = []
    while len(ended) < len(names):
        ended += pool.wait(10)
    pool.stop()
    assert {job.name for job, _ in ended} == {*names}
    return seen


def test_jobs_share_cores_and_gpus(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    monkeypatch.delenv("TF_FORCE_GPU_ALLOW_GROWTH", raising=False)
    monkeypatch.setattr(local_pool, "count_cores", lambda: 9)
    pool = LocalPool(2, gpus=2)
    assert pool.count_jobs() == 2
    for variables in run_in_pool(monkeypatch, pool, "a", "b").values():
        assert variables["TF_NUM_INTRAOP_THREADS"] == "4"
        assert variables["CUDA_VISIBLE_DEVICES"] in ("4,5", "6,7")
        assert "TF_FORCE_GPU_ALLOW_GROWTH" not in variables
    with pytest.raises(ConfigError, match=r"3 jobs with 2 .* need 6 .* has 4"):
        LocalPool(3, gpus=2)
    # On the same GPUs, they take no more memory than they use.
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    seen = run_in_pool(monkeypatch, LocalPool(99), "a")["a"]
    assert seen["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert seen["TF_NUM_INTRAOP_THREADS"] == "1"
    # As the user has set it.
    assert "XLA_PYTHON_CLIENT_PREALLOCATE" not in seen
    assert "CUDA_VISIBLE_DEVICES" not in seen


@contextlib.contextmanager
def orphan(path, name, **about):
    """Holds a claim as a command whose sweep was killed does."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with claim(path / "running" / name, {"process": process.pid, **about}):
        yield path / "running" / name


def test_orphans_are_commands_whose_sweep_is_gone(tmp_path):
    root = open_root(tmp_path)
    with (
        claim(tmp_path / "running" / "own"),
        orphan(tmp_path, "other machine", host="elsewhere"),
        orphan(tmp_path, "orphan") as path,
    ):
        assert root.list_orphans() == (path,)
    assert root.list_orphans() == ()


def test_orphans_count_as_jobs(monkeypatch, tmp_path):
    monkeypatch.setattr(local_pool, "SECONDS", 0.01)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    with orphan(tmp_path, "orphan", devices="5") as path:
        pool = LocalPool(2, gpus=1, orphans=(path,))
        assert "1 of a killed sweep still running" in pool.describe
        seen = run_in_pool(monkeypatch, pool, "a", "b")
    assert {e["CUDA_VISIBLE_DEVICES"] for e in seen.values()} == {"4"}
    with orphan(tmp_path, "orphan") as path:
        pool = LocalPool(1, orphans=(path,))
        pool.submit(make_job(tmp_path, name="c"))
        assert pool.wait(0.2) == []
    assert pool.wait(60)[0][0].name == "c"
    pool.stop()


def test_files_that_cannot_be_written_end_the_sweep(tmp_path):
    (tmp_path / "runs").write_text("not a directory")
    pool = LocalPool(1)
    pool.submit(make_job(tmp_path))
    with pytest.raises(TrainingError, match="cannot run run below"):
        while not pool.wait(10):
            pass
    pool.stop()
