"""Order, repetition and failure of runs, and how their failure is reported."""

import contextlib

import pytest

from tests.trainers.sweeps.fake_pool import FakePool, FakeRoot
from tests.trainers.sweeps.files import make_run, open_root
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
BAD = {"status": 2, "lines": ["a mistake"]}
FULL = {"status": 1, "lines": ["No space left on device"]}


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.01)
    monkeypatch.setattr(module, "LOOK_AGAIN", 0.02)


def coordinate(path, runs, ends, *, at_once=99, other=()):
    """Runs runs whose processes end as records say; all else is real."""
    root = FakeRoot(path)
    root.other = [run.name for run in other]
    ends = {run.name: [*of_run] for run, of_run in zip(runs, ends, strict=True)}
    pool, seen = FakePool(root, ends, at_once), []
    done = Coordinator(
        *(root, pool, runs),
        jobs=2,
        retries=2,
        table=Table(),
        after_each=lambda run: seen.append(run.name),
    )
    done.run()
    assert {*seen} == done.finished
    return done, pool


@pytest.mark.parametrize(
    ("ends", "failed", "printed"),
    [
        ([LOST, KILLED, GOOD], None, ["lost, to be resumed", "status -9"]),
        ([LOST] * 3, ["lost 3 times: NodeDiedError"], ["(NodeDiedError)"]),
        ([KILLED] * 3, ["lost 3 times: exit status -9"], ["failed: "]),
        ([BAD], ["a mistake"], ["failed: "]),
        ([{"status": 1}], [], ["its log is empty"]),
        ([BUSY, BUSY, GOOD], None, ["1 runs that other processes run"]),
    ],
    ids=["resumed", "lost", "killed", "bad", "silent", "busy"],
)
def test_an_end_of_a_run(tmp_path, capsys, ends, failed, printed):
    run = make_run()
    done, pool = coordinate(tmp_path, (run,), [ends])
    assert pool.order == [run.name] * len(ends)
    assert done.finished == ({run.name} if GOOD in ends else set())
    assert done.failed.get(run.name) == failed
    output = capsys.readouterr().out
    for text in printed:
        assert text in output
    assert output.count("that other processes run") == (BUSY in ends)
    # Runs that were lost count as failed from now on.
    state = "failed" if len(ends) == 3 and failed else "missing"
    assert open_root(tmp_path).find_state(run) == state


@pytest.mark.parametrize("left", [True, False])
def test_a_sweep_gives_up_where_run_after_run_fails(tmp_path, left):
    # Two jobs may fail four times without a success between.
    ends = [FULL, FULL, FULL, GOOD, *[FULL] * 4, *[GOOD] * left]
    runs = tuple(make_run(n) for n in range(len(ends)))
    done, _ = coordinate(tmp_path, runs, [[end] for end in ends], at_once=1)
    assert done.gave_up == left
    assert len(done.failed) == 7
    assert done.finished == {runs[3].name}


@pytest.mark.parametrize("end", [GOOD, BAD])
def test_a_run_waits_for_the_one_it_continues(tmp_path, end):
    first = make_run(0)
    second = make_run(1, after=first)
    done, pool = coordinate(tmp_path, (second, first), [[GOOD], [end]])
    if end is GOOD:
        assert pool.order == [first.name, second.name]
    else:
        assert pool.order == [first.name]
        assert done.failed[second.name] == [f"{first.name} failed"]


@pytest.mark.parametrize("number", [2, 6])
def test_failures_are_reported_at_the_end(
    tmp_path, monkeypatch, capsys, number
):
    root, runs = FakeRoot(tmp_path), tuple(make_run(n) for n in range(number))
    bad = {"status": 1, "lines": [f"line {n}" for n in range(9)]}
    pool = FakePool(root, {run.name: [bad] for run in runs}, at_once=1)
    pool.count_jobs = lambda: 2
    monkeypatch.setattr(
        execution, "open_pool", lambda *_: contextlib.nullcontext(pool)
    )
    expected = {
        2: "^2 runs failed, see above: run the same command with --retry_f",
        6: "^4 runs failed, .*such as a full disk. Fix this and run the same "
        "command with --retry_failed=true; or run the same command again",
    }
    with pytest.raises(TrainingError, match=expected[number]):
        execution.train_all(SweepConfig(grid="fake"), root, runs)
    output = capsys.readouterr().out
    assert f"{tmp_path}/runs/{runs[0].name}.log:\n    line 4\n" in output
    assert "line 3" not in output
