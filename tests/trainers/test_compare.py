"""Several runs in one plot and one table."""

import json

import pytest

from tests.trainers.options.odd_flags import MARKUP
from tests.trainers.toy import TOYS, toy_config
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
        "| accuracy at length | 3 | 5 | score | best score | steps | "
        "above the floor up to |"
    )
    assert lines[2:5] == [
        "| `RoPE` | 1 | 0.5 | 0.5 | 0.5 | 2 | 3 |",
        "| `ALiBi` | 0.9 | 0.75 | 0.75 | 0.75 | 2 | 5 |",
        "| floor | 0.5 | 0.4 | 0.4 |  |  |  |",
    ]
    text = (tmp_path / "comparison.md").read_text()
    assert text.splitlines() == [*lines[:5], "", "Runs: `ALiBi`, `RoPE`"]
    assert (tmp_path / "comparison.png").exists()


def test_no_report_of_other_runs_is_replaced(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compare, "plot_results", lambda *_: None)
    runs = [write_run(tmp_path / name, (1, 1)) for name in "abc"]
    written = []
    for some in (runs[:2], runs[1:], runs[1::-1], runs[1:], runs):
        compare_runs(*some)
        written.append(capsys.readouterr().out.splitlines()[-1])
    assert written == [
        f"table: {tmp_path}/comparison.md",
        f"table: {tmp_path}/comparison-2.md",
        f"table, replaced: {tmp_path}/comparison.md",
        f"table, replaced: {tmp_path}/comparison-2.md",
        f"table: {tmp_path}/comparison-3.md",
    ]


def test_names_of_directories_may_have_markup(tmp_path, monkeypatch):
    names = [text.replace("/", "-") for text in (*MARKUP, "bad\udcff")]
    runs = [write_run(tmp_path / name, (1, 1)) for name in names]
    with monkeypatch.context() as patch:
        patch.setattr(compare, "plot_results", lambda *_: None)
        compare_runs(*runs)
    _, _, *rows = (tmp_path / "comparison.md").read_text().splitlines()
    rows = rows[: len(names)]
    for name, row in zip(names, rows, strict=True):
        text = f"({tmp_path / name})".replace("\n", " ")
        text = text.encode(errors="replace").decode()
        assert text in row.replace("\\|", "|")
    odd = [run for run in runs if "$" in run or "\udcff" in run]
    compare_runs(*odd)
    assert (tmp_path / "comparison-2.png").exists() and len(odd) == 3


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


def test_labels_are_never_cut_inside_a_value(tmp_path):
    long = f"RandomizedRoPE(max_position={10**40})"
    runs = {
        "a": {"encoding": "RoPE", "learning_rate_schedule": "Cosine(end=1e-4)"},
        "b": {"encoding": "RoPE", "model_dim": 128, "sampler": long},
        "c": {"encoding": long, "model_dim": 16, "dropout": 0.25},
    }
    paths = [tmp_path / name for name in runs]
    results = [
        {"trainer": "algorithmic", "config": {**TOYS["algorithmic"], **changes}}
        for changes in runs.values()
    ]
    assert find_labels(paths, results) == [
        f"RoPE, no sampler, model_dim=8, dropout=0.1, ... ({paths[0]})",
        f"RoPE, ... ({paths[1]})",
        f"{long}, ... ({paths[2]})",
    ]
    assert find_labels(paths[:2], results[:2])[1] == (
        f"sampler={long}, ... ({paths[1]})"
    )


def test_a_run_that_is_older_than_a_flag_has_its_default(tmp_path):
    config = vars(toy_config())
    results = [
        {"trainer": "algorithmic", "config": {**config, "clip_norm": norm}}
        for norm in (1.0, 2.0)
    ]
    del results[0]["config"]["clip_norm"]
    paths = [tmp_path / name for name in "ab"]
    assert find_labels(paths, results) == ["clip_norm=1.0", "clip_norm=2.0"]


def change(path, **changes):
    """Changes entries of results; `None` removes one."""
    file = path / "results.json"
    found = {**json.loads(file.read_text()), **changes}
    kept = {name: value for name, value in found.items() if value is not None}
    file.write_text(json.dumps(kept))


def make_text(digest, **changes):
    """Entries of the results of a run on text."""
    config = vars(toy_config("enwik8", **changes))
    return {"trainer": "enwik8", "config": config, "data_digest": digest}


DIFFERENT = {
    "tasks": (
        {},
        {"config": vars(toy_config(task="even_pairs", test_lengths="5"))},
        r"(task reverse_string and even_pairs): compare runs of one problem, "
        "or report several by trainers.report.",
    ),
    "metrics": (
        {},
        {
            "score_metric": "loss",
            "final": {"loss_by_length": {"5": 1}, "score": 1, "step": 2},
        },
        "(metric accuracy and loss): compare runs of one problem.",
    ),
    "trainers": (
        {},
        make_text(""),
        "(trainer algorithmic and enwik8): compare runs of one problem.",
    ),
    "texts": (
        make_text("sha256:1"),
        make_text("sha256:2"),
        "on different data",
    ),
    "data sets": (
        make_text("sha256:1"),
        make_text("sha256:2", dataset="python_source"),
        "(dataset files and python_source): compare runs",
    ),
    "splits": (
        make_text("sha256:1"),
        make_text("sha256:1", split="validation"),
        "(split test and validation): compare runs",
    ),
    "lengths": (
        {},
        {
            "final": {
                "accuracy_by_length": {"3": 1, "5": 1, "6": 1},
                "score": 1,
                "step": 2,
            }
        },
        "is scored at lengths 5, and {other} at 5, 6: measure both at the same "
        "lengths by `python -m trainers.evaluate RUN --test_lengths=...`, and "
        "compare the files that it writes.",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_runs_of_different_problems_are_refused(tmp_path, name):
    first, second, message = DIFFERENT[name]
    for run, changes in (("run", first), ("other", second)):
        write_run(tmp_path / run, (1, 1))
        change(tmp_path / run, **changes)
    with pytest.raises(ConfigError) as caught:
        compare_runs(str(tmp_path / "run"), str(tmp_path / "other"))
    message = message.replace("{other}", str(tmp_path / "other"))
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'run'} ")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "comparison.md").exists()


def test_what_is_compared_may_differ(tmp_path):
    """Also trained lengths, while the scored ones are the same."""
    flags = (
        {"encoding": "RoPE"},
        {"encoding": "ALiBi", "num_layers": 2},
        {"encoding": "RoPE", "train_length": "1-4"},
    )
    runs = [
        write_run(tmp_path / str(n), (1, 1), **f) for n, f in enumerate(flags)
    ]
    compare_runs(*runs)
    text = (tmp_path / "comparison.md").read_text()
    assert "train_length=1-4" in text


BROKEN = {
    "an unknown trainer": (
        {"trainer": "algorithm"},
        "the trainer of {file} cannot be 'algorithm'. Did you mean algori",
    ),
    "a newer configuration": (
        {"config": {"bells": 3}},
        "{file} has flags that this version does not know: use the version "
        "that began the run.",
    ),
    "a wrong configuration": (
        {"config": {"train_length": 3}},
        "--train_length must be of type str; got 3.",
    ),
    "no metric": ({"score_metric": None}, "{file} has no score_metric: it is"),
    "another metric": (
        {"score_metric": "loss"},
        "{file} has no loss_by_length: it is damaged or of another version.",
    ),
    "no score": (
        {"final": {"accuracy_by_length": {"5": 1}, "step": 2}},
        "{file} has no score: it is",
    ),
    "no step": (
        {"final": {"accuracy_by_length": {"5": 1}, "score": 1}},
        "{file} has no step: it is",
    ),
    "no number": (
        {"final": {"accuracy_by_length": {"5": "x"}, "score": 1, "step": 2}},
        "{file} cannot be read: it is",
    ),
    "no floor": ({"floor_by_length": None}, "{file} has no floor_by_length: "),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_results_are_named(tmp_path, name):
    changes, message = BROKEN[name]
    write_run(tmp_path / "run", (1, 1))
    change(tmp_path / "run", **changes)
    with pytest.raises(ConfigError) as caught:
        compare_runs(str(tmp_path / "run"))
    message = message.replace("{file}", str(tmp_path / "run" / "results.json"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "comparison.md").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none", "none has no results.json: is it a run, and has it finished?"),
        ("x" * 300, "File name too long"),
    ],
)
def test_nothing_to_compare(tmp_path, name, message):
    with pytest.raises(ConfigError, match=message):
        compare_runs(str(tmp_path / name))
