import json

import numpy as np
import pytest

from benchmarks.faults.run_files import (
    find_checkpoints,
    read_metrics,
    read_outcome,
    read_state,
)
from tests.benchmarks.faults.toy import save, write_metrics


def test_checkpoints_are_in_the_order_of_their_steps(tmp_path):
    files = {step: save(tmp_path, step, 0.0) for step in (10, 8, 100)}
    found = find_checkpoints(tmp_path)
    assert list(found) == [8, 10, 100]
    assert found == files


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
    save(tmp_path, 4, 1.0).rename(tmp_path / "checkpoints" / "best-4.npz")
    results = {"train": {"seconds": 1}, "config": {}, "final": {"score": 0.5}}
    (tmp_path / "results.json").write_text(json.dumps(results))
    outcome = read_outcome(tmp_path)
    assert outcome["losses"] == [
        (step, "train_loss", "", "0.5") for step in ("2", "4")
    ]
    assert outcome["results"] == {"final": {"score": 0.5}}
    assert list(outcome["best weights"]) == ["best-4.npz"]
    assert not outcome["evaluations"]
    assert not outcome["plot"]
