"""Several runs in one plot and one table."""

import json

import pytest

from tests.trainers.toy import toy_config
from trainers import compare
from trainers.compare import CompareConfig, find_labels
from trainers.errors import ConfigError
from trainers.options.fields import resolve


def write_run(path, accuracies, metric="accuracy", **changes):
    """Writes the results of a run as they would be."""
    path.mkdir(parents=True)
    config = vars(toy_config(**changes, test_lengths="5"))
    by_length = dict(zip(("3", "5"), accuracies, strict=True))
    evaluation = {
        f"{metric}_by_length": by_length,
        "score": by_length["5"],
        "step": 2,
    }
    results = {
        "trainer": "algorithmic",
        "config": config,
        "final": evaluation,
        "best": evaluation,
        "score_metric": metric,
        "floor_by_length": {"3": 0.5, "5": 0.4},
        "position_only_by_length": {"3": 0.5, "5": 0.4},
    }
    (path / "results.json").write_text(json.dumps(results))
    return str(path)


def compare_runs(*runs, **flags):
    compare.main(resolve(CompareConfig, {}, flags), *runs)


def test_a_table_and_a_plot_above_the_runs(tmp_path, capsys):
    runs = [
        write_run(tmp_path / name, accuracies, encoding=name)
        for name, accuracies in (("RoPE", (1, 0.5)), ("ALiBi", (0.9, 0.75)))
    ]
    compare_runs(*runs)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "| accuracy at length | 3 | 5 | score | best score | steps |"
    )
    assert lines[2:4] == [
        "| `RoPE` | 1 | 0.5 | 0.5 | 0.5 | 2 |",
        "| `ALiBi` | 0.9 | 0.75 | 0.75 | 0.75 | 2 |",
    ]
    assert (tmp_path / "comparison.md").read_text().splitlines() == lines[:4]
    assert (tmp_path / "comparison.png").exists()


def test_labels_say_what_differs(tmp_path):
    runs = {
        "a": {"encoding": "RoPE", "seed": 0},
        "b": {"encoding": "RoPE", "seed": 1},
        "c": {"encoding": "RoPE", "seed": 1},
    }
    paths = [tmp_path / name for name in runs]
    for path, changes in zip(paths, runs.values(), strict=True):
        write_run(path, (1, 1), **changes)
    results = [compare.read(path) for path in paths]
    b, c = (f"seed=1 ({tmp_path / name})" for name in "bc")
    assert find_labels(paths, results) == ["seed=0", b, c]
    assert find_labels(paths[:1], results[:1]) == [f"({tmp_path / 'a'})"]


def test_labels_name_the_run_that_a_run_began_with(tmp_path):
    source = str(tmp_path / "first" / "checkpoints" / "checkpoint-2.npz")
    paths = [tmp_path / "first", tmp_path / "second"]
    for path, begun in zip(paths, ("", source), strict=True):
        write_run(path, (1, 1), encoding="RoPE", initialize_from=begun)
    results = [compare.read(path) for path in paths]
    assert find_labels(paths, results) == [
        f"({tmp_path / 'first'})",
        "from first",
    ]


def test_mistakes(tmp_path):
    run = write_run(tmp_path / "run", (1, 1))
    other = write_run(tmp_path / "other", (1, 1), metric="exact_match")
    for runs, message in (
        ((run, tmp_path / "none"), "none has no results.json: is it a run"),
        ((run, other), "different metrics"),
    ):
        with pytest.raises(ConfigError, match=message):
            compare_runs(*map(str, runs), output=str(tmp_path))
    assert not (tmp_path / "comparison.md").exists()
