"""Several runs in one plot and one table."""

import pathlib
import re

import pytest

from tests.trainers.reports.toy_grid import write_files
from tests.trainers.toy import change, toy_config
from trainers import compare
from trainers.compare import CompareConfig, find_labels
from trainers.errors import ConfigError


def write_run(path, accuracies=(1, 1), **changes):
    """Writes the results of a run as they would be."""
    config = toy_config(**changes, test_lengths="5")
    write_files(path, config, dict(zip((3, 5), accuracies, strict=True)))
    floor = {"3": 0.5, "5": 0.4}
    floors = {"floor_by_length": floor, "position_only_by_length": floor}
    change(path / "results.json", **floors)
    return str(path)


def compare_runs(*runs):
    compare.main(CompareConfig(), *runs)


def test_a_table_and_a_plot_above_the_runs(tmp_path, capsys):
    rope = {"train_length": "1-4"}
    compare_runs(
        write_run(tmp_path / "RoPE", (1, 0.5), encoding="RoPE", **rope),
        write_run(tmp_path / "ALiBi", (0.9, 0.75), encoding="ALiBi"),
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "| accuracy at length | 3 | 5 | score | best score | steps | "
        "above the floor up to |"
    )
    assert lines[2:5] == [
        "| `RoPE, train_length=1-4` | 1 | 0.5 | 0.5 | 0.5 | 2 | 3 |",
        "| `ALiBi, train_length=1-3` | 0.9 | 0.75 | 0.75 | 0.75 | 2 | 5 |",
        "| floor | 0.5 | 0.4 | 0.4 |  |  |  |",
    ]
    text = (tmp_path / "comparison.md").read_text()
    assert text.splitlines() == [*lines[:5], "", "Runs: `ALiBi`, `RoPE`"]
    assert (tmp_path / "comparison.png").exists()


def test_no_report_of_other_runs_is_replaced(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compare, "plot_results", lambda *_: None)
    runs = [write_run(tmp_path / name) for name in "abc"]
    written = []
    for some in (runs[:2], runs[1:], runs[1::-1]):
        compare_runs(*some)
        written.append(capsys.readouterr().out.splitlines()[-1])
    assert written == [
        f"table: {tmp_path}/comparison.md",
        f"table: {tmp_path}/comparison-2.md",
        f"table, replaced: {tmp_path}/comparison.md",
    ]


@pytest.mark.parametrize(
    ("changed", "labels"),
    [
        # What differs, and the path where it is the same.
        (
            [{"seed": 0}, {"seed": 1}, {"seed": 1}],
            ["seed=0", "seed=1 (b)", "seed=1 (c)"],
        ),
        (
            [{}, {"initialize_from": "first/checkpoints/checkpoint-2.npz"}],
            ["(a)", "from first"],
        ),
        # A run that is older than a flag has its default.
        (
            [{"clip_norm": None}, {"clip_norm": 2.0}],
            ["clip_norm=1.0", "clip_norm=2.0"],
        ),
    ],
)
def test_labels(changed, labels):
    results = []
    for changes in changed:
        config = {**vars(toy_config()), **changes}
        config = {n: value for n, value in config.items() if value is not None}
        results.append({"trainer": "algorithmic", "config": config})
    paths = [pathlib.Path(letter) for letter in "abc"[: len(changed)]]
    assert find_labels(paths, results) == labels


def make_text(digest, **changes):
    """Entries of the results of a run on text."""
    config = vars(toy_config("enwik8", **changes))
    return {"trainer": "enwik8", "config": config, "data_digest": digest}


OTHER_TASK = vars(toy_config(task="even_pairs", test_lengths="5"))


def make_final(**curves):
    return {"final": {**curves, "score": 1, "step": 2}}


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ({}, {"config": OTHER_TASK}, "(task reverse_string and even_pairs)"),
        (
            {},
            {"score_metric": "loss", **make_final(loss_by_length={"5": 1})},
            "(metric accuracy and loss): compare runs of one problem.",
        ),
        (make_text("sha256:1"), make_text("sha256:2"), "on different data"),
        (
            {},
            make_final(accuracy_by_length={"3": 1, "5": 1, "6": 1}),
            "is scored at lengths 5, and ",
        ),
        ({}, {"trainer": "algorithm"}, " cannot be 'algorithm'. Did you mean"),
        ({}, {"config": {"bells": 3}}, "flags that this version does not know"),
        ({}, {"config": {"train_length": 3}}, "--train_length must be of type"),
        ({}, {"floor_by_length": ...}, "has no floor_by_length: it is damage"),
        (
            {},
            make_final(accuracy_by_length={"5": "x"}),
            "other/results.json cannot be read: it is damaged",
        ),
    ],
)
def test_what_cannot_be_compared(tmp_path, ours, theirs, message):
    for name, changes in (("run", ours), ("other", theirs)):
        write_run(tmp_path / name)
        change(tmp_path / name / "results.json", **changes)
    with pytest.raises(ConfigError, match=re.escape(message)):
        compare_runs(str(tmp_path / "run"), str(tmp_path / "other"))
    assert not (tmp_path / "comparison.md").exists()
