import os

import numpy as np
import pytest

from benchmarks.faults.run import EVALUATE_EVERY, STEPS, Failure
from tests.benchmarks.faults.toy import LOG, EndedProcess, save, write_metrics


def test_other_weights_are_noticed(run):
    save(run.path, 4, 4)
    run.check_checkpoints()
    file = save(run.path, STEPS, np.nextafter(np.float32(STEPS), 0))
    with pytest.raises(Failure, match=f"{file} differs"):
        run.check_checkpoints()


def test_a_damaged_checkpoint_is_known_until_it_is_written_again(run):
    file = save(run.path, 4, 4)
    file.write_bytes(file.read_bytes()[:50])
    run.damaged[file] = file.read_bytes()
    run.check_checkpoints()
    save(run.path, 4, 5)
    with pytest.raises(Failure, match=f"{file} differs"):
        run.check_checkpoints()


def test_a_checkpoint_being_written_differs_from_one_left_before(run):
    partial = save(run.path, 4, 4).with_suffix(".partial")
    partial.write_bytes(b"half")
    assert run.is_saving()
    os.utime(partial, (1.0, 1.0))
    run.started = 2.0
    assert not run.is_saving()


def test_waiting_for_a_step(run):
    process = EndedProcess(None)
    looks = []

    def wait(seconds):
        looks.append(seconds)
        write_metrics(run.path, 2 * len(looks))

    process.wait = wait
    assert run.wait_for_step(process, 5) is None
    assert len(looks) == 3
    assert run.wait_for_step(EndedProcess(0), STEPS) == 0


def test_moments(run):
    assert run.find_moment("") == "starting"
    write_metrics(run.path, EVALUATE_EVERY - 2)
    assert run.find_moment(LOG) == "training"
    write_metrics(run.path, EVALUATE_EVERY)
    assert run.find_moment(LOG) == "evaluating"
    (run.path / "results.json").write_text("{}")
    assert run.find_moment(LOG) == "finishing"
    save(run.path, 4, 4).with_suffix(".partial").write_bytes(b"half")
    assert run.find_moment(LOG) == "saving"


def test_a_missing_end_is_noticed(run):
    save(run.path, 4, 4)
    with pytest.raises(Failure, match="the last checkpoint is missing"):
        run.check_end()
