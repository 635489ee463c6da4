import contextlib

import pytest

from tests.trainers.sweeps.files import (
    make_run,
    open_root,
    write_record,
    write_results,
)
from trainers.errors import TrainingError
from trainers.sweeps import training
from trainers.sweeps.options import SweepConfig

GOOD = {"status": 0, "seconds": 60.0}
LOST = {"status": -9, "lost": 1}
BAD = {"status": 2, "lines": [f"line {n}" for n in range(9)]}


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Trains runs on two workers that end them as pairs of records say."""
    root = open_root(tmp_path)

    def train(runs, *ends):
        ends, seen = [*ends], []

        def wait(seconds):
            run, record = ends.pop(0)
            if record is GOOD:
                write_results(root, run)
            write_record(root, run, **record)

        opened = contextlib.nullcontext((2, wait))
        monkeypatch.setattr(training, "open_workers", lambda *_: opened)
        try:
            config = SweepConfig(grid="fake")
            training.train_all(config, root, runs, after_each=seen.append)
        finally:
            assert not ends
            assert seen == [run for run in runs if root.is_finished(run)]

    return train


def test_a_sweep_says_how_far_it_is(train, capsys):
    first, last = make_run(0), make_run(2)
    runs = (first, make_run(1, after=first), last)
    train(runs, (first, LOST), (first, GOOD), (runs[1], GOOD), (last, GOOD))
    assert capsys.readouterr().out.splitlines() == [
        f"lost, to be resumed: {first.name} (exit status -9)",
        f"1/3 finished: {first.name} (1:00), about 1:00 left",
        f"2/3 finished: {runs[1].name} (1:00), about 0:30 left",
        f"3/3 finished: {last.name} (1:00)",
        "all 3 runs are finished",
    ]
    train(runs)
    assert capsys.readouterr().out == "all 3 runs are finished\n"


def test_failures_are_reported_at_the_end(train, tmp_path, capsys):
    first, other = make_run(0), make_run(2)
    runs = (first, make_run(1, after=first), other)
    with pytest.raises(TrainingError, match=r"^2 runs failed, see .* --retry_"):
        train(runs, (first, BAD), (other, GOOD))
    output = capsys.readouterr().out
    assert f"failed: {first.name}: line 8\n" in output
    assert f"failed: {runs[1].name}: {first.name} failed\n" in output
    assert f"{tmp_path}/runs/{first.name}.log:\n    line 4\n" in output
    assert "line 3" not in output


def test_a_sweep_gives_up_where_run_after_run_fails(train):
    # Two jobs may fail four times without a success between.
    runs = tuple(map(make_run, range(9)))
    ends = list(zip(runs, (BAD, BAD, BAD, GOOD, *[BAD] * 5), strict=True))
    with pytest.raises(TrainingError, match=r"^7 runs failed.* full disk\. F"):
        train(runs, *ends[:8])
    with pytest.raises(TrainingError, match=r"^8 runs failed, see above: run"):
        train(runs, ends[8])


def test_results_of_another_configuration_are_a_failure(
    train, tmp_path, capsys
):
    run, other = make_run(), make_run(1)
    write_results(open_root(tmp_path), other).rename(
        tmp_path / "runs" / run.name
    )
    with pytest.raises(TrainingError, match="1 runs failed"):
        train((run,))
    assert "no results of this configuration: move" in capsys.readouterr().out
