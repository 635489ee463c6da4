import dataclasses
import fcntl
import json
import os

from tests.trainers.sweeps.files import make_job
from trainers.sweeps import run_process
from trainers.sweeps.run_process import claim, is_locked, run_job, write_record


def test_a_process_and_its_record(tmp_path):
    job = make_job(tmp_path, "--fails=3", since="1")
    record = run_job(job)
    assert record["status"] == 3
    assert record["lines"] == ["this went wrong"]
    # It has failed since: another process need not try again.
    assert run_job(job) == record
    (job.workdir / "mended").touch()
    write_record(tmp_path, "run", {**record, "seconds": 100})
    again = run_job(dataclasses.replace(job, since="9"))
    assert again["status"] == 0
    assert 100 < again["seconds"] < 200
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
    with claim(tmp_path / "running" / "run"):
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
    with claim(path):
        assert json.loads(path.read_text())["process"] == os.getpid()
        with claim(path) as second:
            assert second is None
    assert not path.exists()


def test_a_claim_that_its_holder_removes_is_made_again(tmp_path, monkeypatch):
    path, lock = tmp_path / "running", run_process._lock

    def remove_first(file):
        monkeypatch.setattr(run_process, "_lock", lock)
        path.unlink()
        return lock(file)

    monkeypatch.setattr(run_process, "_lock", remove_first)
    with claim(path):
        assert path.exists()
