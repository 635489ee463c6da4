"""Runs of several commands: what is reported of each, and of failures."""

import json
import time

import numpy as np
import pytest

from benchmarks.runs import (
    LENGTHS,
    find_workdir,
    format_table,
    run_all,
    run_at_once,
)

ROW = {
    "task": "even_pairs",
    "encoding": "RoPE(rotary_fraction=0.5)",
    "seed": 3,
    "steps": 1,
    "num_layers": 1,
    "batch_size": 8,
    "train_length": "1-3",
    "test_lengths": "5,6",
    "evaluation_examples": 10,
}


def test_calls_go_on_after_a_failure(capsys):
    def fail():
        raise RuntimeError("no space")

    results = run_at_once([fail, lambda: "b", lambda: "c"], jobs=1)
    assert [next(results), next(results)] == [(1, "b"), (2, "c")]
    with pytest.raises(SystemExit, match="1 of 3 commands failed"):
        next(results)
    assert "no space" in capsys.readouterr().out


def test_an_interruption_ends_calls_that_have_not_begun():
    begun = []

    def interrupt():
        begun.append("a")
        raise KeyboardInterrupt

    def wait():
        begun.append("b")
        time.sleep(0.05)

    calls = [interrupt, *[wait] * 100]
    with pytest.raises(KeyboardInterrupt):
        list(run_at_once(calls, jobs=1))
    assert len(begun) < len(calls)


@pytest.mark.process
def test_results_and_failures(tmp_path, capsys):
    broken = {**ROW, "encoding": "RoPE(rotary_fraction=2.0)"}
    with pytest.raises(SystemExit, match="1 of 2 commands failed"):
        run_all([broken, ROW], root=tmp_path, jobs=2)
    output = capsys.readouterr().out
    assert f"{find_workdir(broken, tmp_path)}: exit status 2, see" in output
    log = find_workdir(broken, tmp_path).with_name(
        "even_pairs-RoPE(rotary_fraction=2.0)-3.log"
    )
    assert "rotary_fraction must be" in log.read_text()

    # What has run is not run again.
    before = (find_workdir(ROW, tmp_path) / "metrics.csv").read_text()
    (result,) = run_all([ROW], root=tmp_path, jobs=1)
    assert (find_workdir(ROW, tmp_path) / "metrics.csv").read_text() == before
    path = find_workdir(ROW, tmp_path) / "results.json"
    written = json.loads(path.read_text())
    accuracies = written["final"]["accuracy_by_length"]
    assert result["accuracy_by_length"] == accuracies
    unseen = [accuracies["5"], accuracies["6"]]
    assert result["score"] == pytest.approx(np.mean(unseen))
    assert result["command"] == (
        "python -m trainers.algorithmic --task=even_pairs "
        '"--encoding=RoPE(rotary_fraction=0.5)" --seed=3 --steps=1 '
        "--num_layers=1 --batch_size=8 --train_length=1-3 --test_lengths=5,6 "
        "--evaluation_examples=10"
    )


def test_table():
    def row(seed, score):
        return {
            "task": "even_pairs",
            "encoding": "RoPE",
            "seed": seed,
            "command": f"command {seed}",
            "score": score,
            "floor": 0.51,
            "position_only": 0.5,
            "accuracy_by_length": dict.fromkeys(LENGTHS, score),
            "training_seconds": 60.0,
        }

    text = format_table("Title", [row(0, 0.7), row(1, 0.9)])
    assert (
        "| even_pairs | `RoPE` | 2 | 0.900 | 0.800 | 0.100 | 0.510 | 0.500 | "
        "0.800 | 0.800 |"
    ) in text
    assert "- 0.900 (60 s): `command 1`" in text
