"""Runs of the benchmarks that train: reports, rows and failures."""

import json
import sys
import types

import pytest
from absl import flags

from tests.benchmarks.modules import imported, load
from tests.trainers.toy import TOY
from trainers.records.workdir import read_results

runs = load("runs")

FLAGS = {**TOY, "task": "even_pairs", "seed": 3, "steps": 1, "model_dim": 16}
TRAINING = (
    *("addition", "answers", "evidence", "frontier", "images", "kinds"),
    *("language", "long_multiplication", "multiplication", "published_tasks"),
    "randomized_forms",
)


def make_rows(*fractions):
    return [
        runs.make_row(
            "algorithmic",
            {**FLAGS, "encoding": f"RoPE(rotary_fraction={fraction})"},
            fraction=fraction,
        )
        for fraction in fractions
    ]


def measure(row, workdir, results):
    """Also shows that a run is not trained again."""
    return {**runs.summarize(row, workdir, results), "workdir": workdir.name}


@pytest.mark.process
def test_only_what_is_missing_is_trained(tmp_path, capsys, monkeypatch):
    root, output = tmp_path / "runs", tmp_path / "report.json"
    given = {"root": str(root), "output": str(output), "jobs": 2, "flags": ""}
    monkeypatch.setattr(runs, "FLAGS", types.SimpleNamespace(**given))
    first, second = make_rows(0.25, 0.5)
    with pytest.raises(SystemExit):
        runs.report("x", [first, *make_rows(2.0)], measure)
    assert "rotary_fraction" in capsys.readouterr().err

    (row,) = runs.report(
        "x", [first, second], measure, chosen=lambda c: c["fraction"] == 0.5
    )
    assert row["command"] == second.command
    assert row["fraction"] == 0.5
    path = root / "runs" / row["workdir"]
    accuracies = row["accuracy_by_length"]
    final = read_results(path / "results.json")["final"]
    assert accuracies == final["accuracy_by_length"]
    assert row["score"] == (accuracies["5"] + accuracies["6"]) / 2

    before = (path / "metrics.csv").stat().st_mtime_ns
    rows = runs.report("x", [first, second], measure)
    assert [row["fraction"] for row in rows] == [0.25, 0.5]
    assert (path / "metrics.csv").stat().st_mtime_ns == before
    written = output.read_text()
    assert json.loads(written)["rows"] == rows

    # A report of other flags is not overwritten.
    with pytest.raises(SystemExit):
        runs.report("x", [first], measure)
    assert "choose another --output" in capsys.readouterr().err
    assert output.read_text() == written

    # Rows are written one by one, also those of runs that had finished.
    output.unlink()
    counts = []
    monkeypatch.setattr(
        runs,
        "write_report",
        lambda path, module, content: counts.append(len(content["rows"])),
    )
    assert runs.report("x", [first, second], measure) == rows
    assert counts == [1, 2, 2]


@pytest.mark.parametrize("name", TRAINING)
def test_committed_reports_are_of_the_runs_of_today(name, monkeypatch):
    found = []

    def read(module, rows, measure, *, chosen=None):
        assert module == name
        found.extend(sys.modules["benchmarks.runs"].read_known(rows))
        raise StopIteration

    with imported(name) as benchmark:
        flags.FLAGS([name])
        # Comparisons of methods share a module that reports.
        comparison = sys.modules.get("benchmarks.comparison")
        module = benchmark if hasattr(benchmark, "report") else comparison
        monkeypatch.setattr(module, "report", read)
        with pytest.raises(StopIteration):
            benchmark.main([])
    assert found
