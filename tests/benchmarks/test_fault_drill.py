"""A short drill, and that the drill notices what is lost."""

import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.fault_drill import STEPS, Failure, Reference, Run, state

QUICK = ("sigkill", "sigterm", "sigint", "truncate", "disk")


@pytest.mark.parametrize(
    ("kinds", "faults"),
    [
        pytest.param(QUICK, 10, id="short"),
        pytest.param((*QUICK, "worker"), 60, marks=pytest.mark.slow, id="long"),
    ],
)
def test_drill(tmp_path, kinds, faults):
    report = tmp_path / "report.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.fault_drill"),
            *(f"--faults={faults}", f"--kinds={','.join(kinds)}"),
            *("--most=5", f"--output={report}"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text())
    assert not found["failures"]
    # Without root there is no file system to fill, and no claim about it.
    assert set(found["not_run"]) <= {"disk"}
    assert set(found["kinds"]) | set(found["not_run"]) == set(kinds)
    share = faults // len(kinds)
    for tally in found["kinds"].values():
        assert tally["faults"] == sum(tally["moments"].values()) == share
        assert tally["passed"] == tally["runs"] >= 1
    assert found["faults"] == share * len(found["kinds"])


def save(path, step, weight):
    (path / "checkpoints").mkdir(parents=True, exist_ok=True)
    file = path / "checkpoints" / f"checkpoint-{step}.npz"
    np.savez(file, weight=np.float32(weight), step=step, seconds=weight)
    return file


@pytest.fixture
def run(tmp_path):
    states = {
        step: state(save(tmp_path / "undisturbed", step, step))
        for step in (4, STEPS)
    }
    reference = Reference({}, states, seconds={})
    path = tmp_path / "run"
    return Run(path, tmp_path / "logs", reference, random.Random(0))


def test_other_weights_are_noticed(run):
    save(run.path, 4, 4)
    run.check_checkpoints()
    file = save(run.path, STEPS, np.nextafter(np.float32(STEPS), 0))
    with pytest.raises(Failure, match=f"{file} differs"):
        run.check_checkpoints()


def test_what_was_damaged_is_known_until_it_is_written_anew(run):
    file = save(run.path, 4, 4)
    file.write_bytes(file.read_bytes()[:50])
    run.damaged[file] = file.read_bytes()
    run.check_checkpoints()
    save(run.path, 4, 5)
    with pytest.raises(Failure, match=f"{file} differs"):
        run.check_checkpoints()


def test_a_checkpoint_being_written_is_told_from_what_was_left_before(run):
    partial = save(run.path, 4, 4).with_suffix(".partial")
    partial.write_bytes(b"half")
    assert run.is_saving()
    os.utime(partial, (1.0, 1.0))
    run.started = 2.0
    assert not run.is_saving()


def test_a_missing_end_is_noticed(run):
    save(run.path, 4, 4)
    with pytest.raises(Failure, match="the last checkpoint is missing"):
        run.check_end()


def test_unknown_kinds_are_refused():
    command = [sys.executable, "-m", "benchmarks.fault_drill", "--kinds=fire"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--kinds takes sigkill, sigterm, sigint" in done.stderr


@pytest.mark.parametrize("flag", ["--faults=0", "--most=0"])
def test_a_drill_without_faults_is_refused(flag):
    command = [sys.executable, "-m", "benchmarks.fault_drill", flag]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--faults and --most must be at least 1" in done.stderr
