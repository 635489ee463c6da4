"""A run that the drill disturbs: its files, its moments and its checks."""

import numpy as np
import pytest

from benchmarks.faults.run import STEPS, Failure
from benchmarks.faults.run_files import (
    find_checkpoints,
    read_metrics,
    read_state,
)
from tests.benchmarks.faults.toy import save, write_metrics


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
