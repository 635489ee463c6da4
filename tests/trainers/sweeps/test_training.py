"""Order, repetition and failure of runs, and how their failure is reported."""

import contextlib

import pytest

from tests.trainers.sweeps.files import make_run, open_root, write_record
from trainers.errors import TrainingError
from trainers.records.progress import Table
from trainers.sweeps import coordinator as module
from trainers.sweeps import execution
from trainers.sweeps.coordinator import Coordinator
from trainers.sweeps.options import SweepConfig

GOOD = {"status": 0, "seconds": 1.0}
BUSY = {"busy": True}
LOST = {"lost": "NodeDiedError"}
KILLED = {"status": -9}
BAD = {"status": 2, "lines": [f"line {n}" for n in range(9)]}


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.01)
    monkeypatch.setattr(module, "LOOK_AGAIN", 0.02)


class FakePool:
    """Ends one job at a time, as lists of records by run say."""

    def __init__(self, root, runs, ends):
        self.ends = {
            run.name: [*of_run] for run, of_run in zip(runs, ends, strict=True)
        }
        self.submitted, self.order, self.done = [], [], set()
        root.is_finished = lambda run: run.name in self.done

    def submit(self, job):
        self.submitted.append(job)
        self.order.append(job.name)

    def wait(self, seconds):
        if not self.submitted:
            return []
        job = self.submitted.pop(0)
        record = self.ends[job.name].pop(0)
        if record is GOOD:
            self.done.add(job.name)
        return [(job, record)]

    def count_jobs(self):
        return 2


def coordinate(path, runs, ends):
    """Runs runs whose processes end as records say; all else is real."""
    root, seen = open_root(path), set()
    pool = FakePool(root, runs, ends)
    done = Coordinator(
        *(root, pool, runs),
        jobs=2,
        retries=2,
        table=Table(),
        after_each=lambda run: seen.add(run.name),
    )
    done.run()
    assert seen == done.finished
    return done, pool


@pytest.mark.parametrize(
    ("ends", "failed", "printed"),
    [
        ([LOST, KILLED, GOOD], None, "(exit status -9)"),
        ([LOST] * 3, ["lost 3 times: NodeDiedError"], "(NodeDiedError)"),
        ([BAD], BAD["lines"], ": line 8"),
        ([BUSY, BUSY, GOOD], None, "waiting for 1 runs that other processes"),
    ],
    ids=["resumed", "lost", "bad", "busy"],
)
def test_an_end_of_a_run(tmp_path, capsys, ends, failed, printed):
    run = make_run()
    done, pool = coordinate(tmp_path, (run,), [ends])
    assert pool.order == [run.name] * len(ends)
    assert done.finished == ({run.name} if GOOD in ends else set())
    assert done.failed.get(run.name) == failed
    assert printed in capsys.readouterr().out
    # Runs that were lost count as failed from now on.
    state = "failed" if ends == [LOST] * 3 else "missing"
    assert open_root(tmp_path).find_state(run) == state


def test_a_sweep_gives_up_where_run_after_run_fails(tmp_path):
    # Two jobs may fail four times without a success between.
    ends = [[end] for end in (BAD, BAD, BAD, GOOD, *[BAD] * 4, GOOD)]
    runs = tuple(make_run(n) for n in range(len(ends)))
    for left in (1, 0):
        known = runs[: 8 + left]
        done, _ = coordinate(tmp_path, known, ends[: len(known)])
        assert done.gave_up == left
        assert len(done.failed) == 7
        assert done.finished == {runs[3].name}


def test_a_run_waits_for_the_one_it_continues(tmp_path, capsys):
    first = make_run(0)
    runs = second, _ = make_run(1, after=first), first
    done, pool = coordinate(tmp_path, runs, [[GOOD], [BAD]])
    assert pool.order == [first.name]
    assert done.failed[second.name] == [f"{first.name} failed"]
    capsys.readouterr()
    write_record(open_root(tmp_path), first, status=0, seconds=60)
    _, pool = coordinate(tmp_path, runs, [[GOOD], [GOOD]])
    assert pool.order == [first.name, second.name]
    # Of the second one, which is one of two jobs.
    one, other = capsys.readouterr().out.splitlines()
    assert one.endswith("(0:01), about 0:30 left")
    assert other.endswith("(0:01)")


def test_results_of_another_configuration_are_a_failure(tmp_path):
    done, _ = coordinate(tmp_path, (make_run(),), [[{"status": 0}]])
    ((line,),) = done.failed.values()
    assert "has no results of this configuration: move it away" in line


def test_failures_are_reported_at_the_end(tmp_path, monkeypatch, capsys):
    root, runs = open_root(tmp_path), tuple(map(make_run, range(6)))
    pool = FakePool(root, runs, [[BAD]] * 6)
    monkeypatch.setattr(
        execution, "open_pool", lambda *_: contextlib.nullcontext(pool)
    )
    with pytest.raises(TrainingError, match=r"^4 runs failed.* full disk\. F"):
        execution.train_all(SweepConfig(grid="fake"), root, runs)
    output = capsys.readouterr().out
    assert f"{tmp_path}/runs/{runs[0].name}.log:\n    line 4\n" in output
    assert "line 3" not in output
