import json
import pathlib
import re

import pytest

from keras_lengen.evaluation import wilson_interval
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
    verdict = lines[-1]
    assert verdict.endswith(" train at least two.")
    runs = "Runs: `ALiBi`, `RoPE`"
    assert text.splitlines() == [*lines[:5], "", verdict, "", runs]
    assert (tmp_path / "comparison.png").exists()
    assert (
        (tmp_path / "comparison.csv")
        .read_text()
        .startswith(
            "run,trainer,encoding,train_length,seed,trained_steps,metric,length,"
            "value,low,high\nRoPE,algorithmic,RoPE,1-4,0,2,accuracy,3,1.0,,\n"
        )
    )


def test_no_report_of_other_runs_is_replaced(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compare, "plot_results", lambda *_: None)
    runs = [write_run(tmp_path / name) for name in "abc"]
    written = []
    for some in (runs[:2], runs[1:], runs[1::-1]):
        compare_runs(*some)
        written.append(capsys.readouterr().out.splitlines()[-2])
    assert written == [
        f"table: {tmp_path}/comparison.md",
        f"table: {tmp_path}/comparison-2.md",
        f"table, replaced: {tmp_path}/comparison.md",
    ]


@pytest.mark.parametrize(
    ("rope", "alibi", "cell", "verdict"),
    [
        # 12.706 * 0.01 / 2 ** 0.5 on both sides of the mean.
        (
            [0.51, 0.53],
            [0.8, 0.8],
            "0.52 (0.393 to 0.647)",
            "Best: `ALiBi` (t test, 2 seeds of each).",
        ),
        (
            [0.5, 0.7, 0.6],
            [0.65],
            "0.6 (0.352 to 0.848)",
            "No difference seen between `ALiBi, seed=0` and `RoPE, seed=0,1,2` "
            "with 1 or 3 seeds of each.",
        ),
        (
            [0.5],
            [0.6],
            "0.5 (0.404 to 0.596)",
            "Best score: `ALiBi`. One seed of each says little about the "
            "settings: train at least two.",
        ),
    ],
)
def test_seeds_are_one_curve_and_the_best_is_named(
    rope, alibi, cell, verdict, tmp_path, capsys, figures
):
    runs = []
    for encoding, scores in (("RoPE", rope), ("ALiBi", alibi)):
        for seed, score in enumerate(scores):
            path = tmp_path / encoding / str(seed)
            flags = {"encoding": encoding, "seed": seed}
            runs.append(write_run(path, (1, score), **flags))
            low, high = wilson_interval(score, 100)
            results = json.loads((path / "results.json").read_text())
            final = {
                **results["final"],
                "accuracy_low_by_length": {"3": 0.9, "5": low},
                "accuracy_high_by_length": {"3": 1, "5": high},
            }
            change(path / "results.json", final=final)
    compare_runs(*runs)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| `RoPE")
    assert lines[2].split(" | ")[2] == lines[2].split(" | ")[3] == cell
    assert lines[-1] == verdict
    bands = [b for b in figures[0].axes[0].collections if b.get_paths()]
    assert len(bands) == 2


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


LOSS = {"score_metric": "loss", **make_final(loss_by_length={"5": 1})}
LONGER = make_final(accuracy_by_length={"3": 1, "5": 1, "6": 1})
DAMAGED = make_final(accuracy_by_length={"5": "x"})


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ({}, {"config": OTHER_TASK}, "(task reverse_string and even_pairs)"),
        ({}, LOSS, "(metric accuracy and loss): compare runs of one problem."),
        (make_text("sha256:1"), make_text("sha256:2"), "on different data"),
        ({}, LONGER, "is scored at lengths 5, and "),
        ({}, {"config": {"bells": 3}}, "flags that this version does not know"),
        ({}, {"config": {"train_length": 3}}, "--train_length must be of type"),
        ({}, {"floor_by_length": ...}, "has no floor_by_length: it is damage"),
        ({}, DAMAGED, "other/results.json cannot be read: it is damaged"),
    ],
)
def test_what_cannot_be_compared(tmp_path, ours, theirs, message):
    for name, changes in (("run", ours), ("other", theirs)):
        write_run(tmp_path / name)
        change(tmp_path / name / "results.json", **changes)
    with pytest.raises(ConfigError, match=re.escape(message)):
        compare_runs(str(tmp_path / "run"), str(tmp_path / "other"))
    assert not (tmp_path / "comparison.md").exists()
