"""Order, repetition and failure of runs."""

import pytest

from tests.trainers.sweeps.fake_pool import FakePool, FakeRoot
from tests.trainers.sweeps.files import make_run, open_root
from trainers.records.progress import Table
from trainers.sweeps import coordinator as module
from trainers.sweeps.coordinator import Coordinator

GOOD = {"status": 0, "seconds": 1.0}


def coordinate(tmp_path, ends, *, retries=2, pool=FakePool):
    """Runs runs whose processes end as pairs say; all else is real."""
    root = FakeRoot(tmp_path, arguments={}, directory="", environment={})
    root.done = set()
    pool = pool(root, {run.name: records for run, records in ends})
    runs = tuple(run for run, _ in ends)
    done = Coordinator(
        *(root, pool, runs), jobs=2, retries=retries, table=Table()
    )
    done.run()
    return done, pool


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.01)
    monkeypatch.setattr(module, "LOOK_AGAIN", 0.02)


def test_lost_runs_are_resumed_so_many_times(tmp_path, capsys):
    lost = {"lost": "NodeDiedError"}
    run, other = make_run(0), make_run(1)
    ends = [(run, [lost, {"status": -9}, GOOD]), (other, [lost] * 3)]
    done, pool = coordinate(tmp_path, ends)
    assert done.finished == {run.name}
    assert done.failed == {other.name: ["lost 3 times: NodeDiedError"]}
    assert pool.order.count(other.name) == 3
    assert "lost, to be resumed" in capsys.readouterr().out
    # It counts as failed from now on.
    assert open_root(tmp_path).find_state(other) == "failed"


def test_busy_runs_are_looked_at_again(tmp_path):
    run = make_run()
    ends = [(run, [{"busy": True}, {"busy": True}, GOOD])]
    done, pool = coordinate(tmp_path, ends)
    assert done.finished == {run.name}
    assert len(pool.order) == 3


def test_runs_that_others_run_are_announced_once(tmp_path, capsys):
    run, busy = make_run(0), {"busy": True}
    coordinate(tmp_path, [(run, [busy, busy, GOOD])])
    line = "waiting for 1 runs that other processes run"
    assert capsys.readouterr().out.count(line) == 1


def test_runs_that_others_run_are_not_submitted(tmp_path, monkeypatch):
    run = make_run()
    running = ["running", "running", "missing"]
    monkeypatch.setattr(
        FakeRoot, "find_state", lambda self, run: running.pop(0)
    )
    _, pool = coordinate(tmp_path, [(run, [GOOD])])
    assert not running
    assert pool.order == [run.name]


class OneByOne(FakePool):
    """Ends one job at a time."""

    def wait(self, seconds):
        rest = self.submitted[1:]
        self.submitted = self.submitted[:1]
        ended = super().wait(seconds)
        self.submitted = rest
        return ended


def test_a_sweep_gives_up_where_run_after_run_fails(tmp_path):
    full = {"status": 1, "lines": ["No space left on device"]}
    ends = [full, full, full, GOOD, full, full, full, full, GOOD]
    runs = [make_run(n) for n in range(len(ends))]
    pairs = [(c, [e]) for c, e in zip(runs, ends, strict=True)]
    # There are two jobs.
    done, _ = coordinate(tmp_path / "a", pairs, pool=OneByOne)
    assert done.gave_up
    assert len(done.failed) == 7
    assert done.finished == {runs[3].name}
    # None is left that could fail for the same reason.
    pairs = [(c, [e]) for c, e in zip(runs, ends[:-1], strict=False)]
    done, _ = coordinate(tmp_path / "b", pairs, pool=OneByOne)
    assert not done.gave_up


def test_a_run_waits_for_the_one_it_continues(tmp_path):
    first = make_run(0)
    second = make_run(1, after=first)
    done, pool = coordinate(tmp_path, [(first, [GOOD]), (second, [GOOD])])
    assert pool.order == [first.name, second.name]
    bad = {"status": 2, "lines": ["a mistake"]}
    done, pool = coordinate(tmp_path / "b", [(first, [bad]), (second, [])])
    assert pool.order == [first.name]
    assert done.failed[second.name] == [f"{first.name} failed"]


def test_results_of_another_configuration_are_a_failure(tmp_path):
    run = make_run()

    class Blind(set):
        def add(self, name):
            pass

    root = FakeRoot(tmp_path, arguments={}, directory="", environment={})
    root.done = Blind()
    pool = FakePool(root, {run.name: [GOOD]})
    done = Coordinator(root, pool, (run,), jobs=1, retries=0, table=Table())
    done.run()
    assert "move it away" in done.failed[run.name][0]
