import fcntl

from tests.trainers.sweeps.files import make_job
from trainers.records.claims import claim
from trainers.sweeps import work
from trainers.sweeps.work import JobList, read_record, write_record


def make_list(path, *jobs, retries=2):
    (path / "sweep").touch()
    return JobList(jobs=jobs, sweep=str(path / "sweep"), retries=retries)


def count_starts(job):
    return len((job.workdir / "starts").read_text().split())


def test_a_command_and_its_record(tmp_path):
    job = make_job(tmp_path, "--fails=3")
    jobs = make_list(tmp_path, job)
    jobs.work()
    record = read_record(tmp_path, "run")
    assert (record["status"], record["lines"]) == (3, ["this went wrong"])
    # It has failed: nobody tries again.
    jobs.work()
    assert read_record(tmp_path, "run") == record
    (job.workdir / "mended").touch()
    write_record(tmp_path, "run", {**record, "status": -1, "seconds": 100})
    jobs.work()
    again = read_record(tmp_path, "run")
    assert again["status"] == 0
    assert 100 < again["seconds"] < 200
    jobs.work()
    assert count_starts(job) == 2
    assert not list((tmp_path / "running").iterdir())


def test_a_lost_command_is_resumed_but_not_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(work, "PAUSE", 0)
    job = make_job(tmp_path, "--fails=137")
    make_list(tmp_path, job).work()
    record = read_record(tmp_path, "run")
    assert (record["status"], record["lost"]) == (1, 3)
    assert record["lines"] == ["lost 3 times: exit status 137"]
    assert count_starts(job) == 3
    # A claim that is left is of a command that was lost with its machine.
    other = make_job(tmp_path, name="other")
    for lost in (2, 1):
        other.claim.write_text("{}")
        write_record(tmp_path, "other", {"lost": lost})
        make_list(tmp_path, other).work()
        record = read_record(tmp_path, "other")
        assert record["lost"] == lost + 1
        assert record["status"] == (lost == 2)
    assert count_starts(other) == 1


def test_a_run_waits_for_the_one_it_continues(tmp_path):
    first = make_job(tmp_path, "--fails=3", name="first")
    second = make_job(tmp_path, name="second", after=first)
    third = make_job(tmp_path, name="third", after=second)
    jobs = make_list(tmp_path, second, third, first)
    jobs.work()
    assert count_starts(first) == 1
    assert not second.workdir.exists()
    (first.workdir / "mended").touch()
    write_record(tmp_path, "first", {})
    jobs.work()
    assert third.has_results()


def test_runs_of_others_are_left_alone_and_a_stopped_sweep_has_none(tmp_path):
    job = make_job(tmp_path)
    jobs = make_list(tmp_path, job)
    with claim(job.claim, {"sweep": jobs.sweep}):
        assert jobs.count_running() == 1
    with claim(job.claim, {"sweep": "other"}):
        assert not jobs._train(job, {})
        assert jobs.count_running() == 0
        # It may be about to write whose it is.
        job.claim.write_text("")
        assert jobs.count_running() == 1
    job.workdir.mkdir(parents=True)
    with (job.workdir / "run.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not jobs._train(job, {})
    (tmp_path / "sweep").unlink()
    jobs.work()
    assert not jobs._train(job, {})
    make_list(tmp_path)
    assert jobs._train(job, {})
