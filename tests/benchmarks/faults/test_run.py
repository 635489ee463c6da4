"""A run that the drill disturbs: its files, its moments and its checks."""

import json
import os

import numpy as np
import pytest

from benchmarks.faults import disturb as disturbing
from benchmarks.faults.demonstration import (
    STEPS as DEMONSTRATION_STEPS,
)
from benchmarks.faults.demonstration import disturb_demonstration
from benchmarks.faults.disturb import disturb
from benchmarks.faults.run import EVALUATE_EVERY, STEPS, Failure
from benchmarks.faults.run_files import (
    find_checkpoints,
    read_metrics,
    read_outcome,
    read_state,
)
from benchmarks.faults.tally import Tally
from benchmarks.faults.workers import make_environments
from tests.benchmarks.faults.toy import LOG, EndedProcess, save, write_metrics


def test_a_state_has_every_bit_except_the_seconds(tmp_path):
    file = save(tmp_path, 4, 1.0)
    before = read_state(file)
    np.savez(file, weight=np.float32(1.0), step=4, seconds=2.0)
    assert read_state(file) == before
    np.savez(file, weight=np.float64(1.0), step=4, seconds=2.0)
    assert read_state(file) != before


@pytest.mark.parametrize("tail", ["", "\0" * 9, "6,train_l", "6,train_l\0\0"])
def test_metrics_are_whole_rows(tmp_path, tail):
    write_metrics(tmp_path, 2, 4)
    with (tmp_path / "metrics.csv").open("a") as file:
        file.write(tail)
    assert [row[0] for row in read_metrics(tmp_path)] == ["2", "4"]


def test_an_outcome_has_no_times(tmp_path):
    write_metrics(tmp_path, 2, 4)
    best = save(tmp_path, 4, 1.0).rename(tmp_path / "checkpoints/best-4.npz")
    results = {"train": {"seconds": 1}, "config": {}, "final": {"score": 0.5}}
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert read_outcome(tmp_path) == {
        "losses": [(step, "train_loss", "", "0.5") for step in ("2", "4")],
        "evaluations": set(),
        "results": {"final": {"score": 0.5}},
        "best weights": {"best-4.npz": read_state(best)},
        "plot": False,
    }


def test_other_weights_are_noticed(run):
    files = {step: save(run.path, step, step) for step in (STEPS, 4)}
    # In the order of their steps.
    assert list(find_checkpoints(run.path).items()) == sorted(files.items())
    run.check_checkpoints()
    file = save(run.path, STEPS, np.nextafter(np.float32(STEPS), 0))
    with pytest.raises(Failure, match=f"{file} differs"):
        run.check_checkpoints()
    file.unlink()
    with pytest.raises(Failure, match="the last checkpoint is missing"):
        run.check_end()


def test_a_damaged_checkpoint_is_known_until_it_is_written_again(run):
    file = save(run.path, 4, 4)
    file.write_bytes(file.read_bytes()[:50])
    run.damaged[file] = file.read_bytes()
    run.check_checkpoints()
    save(run.path, 4, 5)
    with pytest.raises(Failure, match=f"{file} differs"):
        run.check_checkpoints()


def test_waiting_for_a_step(run):
    process, looks = EndedProcess(None), []

    def wait(seconds):
        looks.append(seconds)
        write_metrics(run.path, 2 * len(looks))

    process.wait = wait
    assert run.wait_for_step(process, 5) is None
    assert len(looks) == 3
    assert run.wait_for_step(EndedProcess(0), STEPS) == 0


def test_moments_of_a_run(run):
    assert run.find_moment("") == "starting"
    write_metrics(run.path, EVALUATE_EVERY - 2)
    assert run.find_moment(LOG) == "training"
    write_metrics(run.path, EVALUATE_EVERY)
    assert run.find_moment(LOG) == "evaluating"
    (run.path / "results.json").write_text("{}")
    assert run.find_moment(LOG) == "finishing"
    partial = save(run.path, 4, 4).with_suffix(".partial")
    partial.write_bytes(b"half")
    assert run.find_moment(LOG) == "saving"
    # One that an earlier start has left.
    os.utime(partial, (1.0, 1.0))
    run.started = 2.0
    assert run.find_moment(LOG) == "finishing"


def test_moments_of_a_demonstration(demonstration_run):
    process = EndedProcess(None)
    first, second = (model.path for model in demonstration_run.models)
    found = []

    def look():
        changes = demonstration_run.wait_for_change(process)
        found.append((demonstration_run.find_moment(), changes))

    save(first, DEMONSTRATION_STEPS, 1)
    look()
    (first / "results.json").write_text("{}")
    look()
    second.mkdir()
    (second / "config.json").write_text("{}")
    look()
    (second / "results.json").write_text("{}")
    look()
    write_metrics(second, 2)
    look()
    assert found == [
        ("evaluating the first model", True),
        ("between the models", True),
        ("starting the second model", True),
        ("starting the second model", False),
        ("training the second model", False),
    ]
    assert not demonstration_run.wait_for_change(EndedProcess(0))
    (first / "checkpoints" / "checkpoint-40.npz").unlink()
    assert demonstration_run.find_moment() == "training the first model"


@pytest.fixture
def run_of(run, monkeypatch):
    """Makes a run whose starts are these processes."""
    run.reference.seconds.update({True: 1.0, False: 1.0})
    # They never come to a step.
    monkeypatch.setattr(disturbing, "AFTER_STEPS", 0)

    def run_of(*processes):
        waiting = list(processes)

        def start():
            run.logs.append(None)
            process = waiting.pop(0)
            process.fresh = False
            return process

        monkeypatch.setattr(run, "start", start)
        return run

    return run_of


@pytest.mark.parametrize(
    ("kind", "ends", "statuses", "ending"),
    [
        ("sigterm", [], [[0]], None),
        # It seems to run whenever the drill looks; then it is tried again.
        ("sigkill", [None, "killed"], [[None], [None], [0]], "killed"),
        ("second_start", ["refused"], [[None, None, None, 0]], "refused"),
    ],
)
def test_faults_until_the_run_ends(
    run_of, monkeypatch, kind, ends, statuses, ending
):
    monkeypatch.setattr(disturbing, "AIMED", 0)
    effects = iter(ends)
    monkeypatch.setitem(disturbing.FAULTS, kind, lambda *_: next(effects))
    processes = []
    for of_process in statuses:
        process, rest = EndedProcess(None), iter(of_process)
        process.wait = lambda seconds=None, rest=rest, last=of_process[-1]: (
            next(rest, last)
        )
        processes.append(process)
    run = run_of(*processes)
    if kind == "second_start":
        # Files that a process still writes are not checked.
        save(run.path, 4, 5)
    kinds, tally = [kind], Tally({kind: 1})
    disturb(run, kinds, tally)
    # Those that a run escapes stay in the list.
    assert kinds == ([] if ending else [kind])
    assert tally.kinds[kind]["endings"] == ({ending: 1} if ending else {})


def test_checkpoints_that_are_all_damaged_are_removed(run_of):
    said = f"{LOG}error: no checkpoint is whole: remove it to start"
    run = run_of(EndedProcess(2, said), EndedProcess(0))
    file = save(run.path, 4, 5)
    run.damaged[file] = file.read_bytes()
    disturb(run, [], Tally({}))
    assert not file.exists()
    run = run_of(EndedProcess(2, said))
    save(run.path, STEPS, STEPS)
    with pytest.raises(Failure, match="exit status 2 without a fault"):
        disturb(run, [], Tally({}))


def test_a_demonstration_without_effects(demonstration_run, monkeypatch):
    for status, kinds in ((0, ["between"]), (1, [])):
        ended = EndedProcess(status)
        monkeypatch.setattr(demonstration_run, "start", lambda e=ended: e)
        if status:
            with pytest.raises(Failure, match="status 1 without a fault"):
                disturb_demonstration(demonstration_run, kinds, Tally({}))
        else:
            disturb_demonstration(demonstration_run, kinds, Tally({}))
    first = demonstration_run.models[0]
    save(first.path, DEMONSTRATION_STEPS, DEMONSTRATION_STEPS)
    write_metrics(first.path, DEMONSTRATION_STEPS)
    (first.path / "results.json").write_text('{"train": {}, "config": {}}')
    first.reference.outcome.update(read_outcome(first.path))
    with pytest.raises(Failure, match="the last checkpoint is missing"):
        demonstration_run.check_end()


def test_workers_differ_only_in_their_index():
    first, second = (
        json.loads(environment["TF_CONFIG"])
        for environment in make_environments(2)
    )
    assert first["cluster"] == second["cluster"]
    assert len(set(first["cluster"]["worker"])) == 2
    assert [first["task"]["index"], second["task"]["index"]] == [0, 1]
