import json

import pytest

from tests.trainers.reports.test_cells import read, write
from tests.trainers.reports.toy_grid import (
    make_grid,
    write_population,
    write_run,
)
from trainers.errors import ConfigError
from trainers.records.opened_run import make_problem
from trainers.reports.reading import read_saved, report_run


def change(path, name, value=...):
    """Changes an entry of a JSON file; without a value, removes it."""
    content = json.loads(path.read_text())
    if value is ...:
        del content[name]
    else:
        content[name] = value
    path.write_text(json.dumps(content))


def test_members_of_a_population_are_runs(tmp_path):
    scores = [0.9, 0.7, 0.5, 0.3]
    flags = {"seeds": "0,4", "learning_rates": "1e-3,1e-4"}
    path = write_population(tmp_path / "all", "even_pairs", scores, **flags)
    found = read_saved(path)
    pairs = [(s.config["seed"], s.config["learning_rate"]) for s in found]
    assert pairs == [(0, 1e-4), (4, 1e-4), (0, 1e-3), (4, 1e-3)]
    assert make_problem(vars(found[0])).title == "even_pairs"
    (run, *_) = make_grid().runs
    runs = [report_run(run, saved, make_grid()) for saved in found]
    assert [run.scores[None] for run in runs] == pytest.approx([90, 70, 50, 30])
    assert runs[1].curve == {5: 0.7, 6: 0.7}
    assert runs[0].results["steps"] == found[0].config["steps"]

    some = write_population(
        tmp_path / "some", "even_pairs", scores, diverged=[1, 2], **flags
    )
    has_results = [saved.results is not None for saved in read_saved(some)]
    assert has_results == [True, False, False, True]

    began = write_population(tmp_path / "began", "even_pairs", None, **flags)
    found = read_saved(began)
    pairs_too = [(s.config["seed"], s.config["learning_rate"]) for s in found]
    assert pairs_too == pairs
    assert [saved.results for saved in found] == [None] * 4


def test_a_finished_run_has_the_flags_of_its_results(tmp_path):
    grid = make_grid(seeds=1, rows=["even_pairs"], columns=["RoPE"])
    path = write_run(tmp_path, grid.runs[0], {5: 1, 6: 1})
    record = json.loads((path / "config.json").read_text())
    config = {**record["config"], "encoding": "ALiBi", "steps": 9}
    change(path / "config.json", "config", config)
    (saved,) = read_saved(path)
    assert (saved.config["encoding"], saved.config["steps"]) == ("RoPE", 2)


def test_no_run(tmp_path):
    assert read_saved(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "name", "value", "message"),
    [
        ("results", "score_metric", ..., "has no score_metric: it is damaged"),
        ("results", "score_metric", 5, "cannot be read: it is damaged"),
        ("results", "floor_by_length", None, "cannot be read: it is damaged"),
        ("results", "floor_by_length", {"5": "x"}, "cannot be read: it is dam"),
        ("results", "final", 3, "is damaged or of another version"),
        ("results", "final", {"score": "x"}, "has no accuracy_by_length"),
        (
            *("results", "final"),
            {"score": "x", "accuracy_by_length": {"5": [1]}},
            "cannot be read: it is damaged",
        ),
        ("results", "final", {}, "has no score in `final`"),
        ("config", "trainer", "other", "is of an unknown trainer, other"),
        ("config", "config", {"colour": 1}, "that this version does not know"),
    ],
)
def test_damage_is_one_clear_message(tmp_path, file, name, value, message):
    grid = make_grid(seeds=1, rows=["even_pairs"], columns=["RoPE"])
    write(grid, tmp_path, [0.5])
    (path,) = (tmp_path / "runs").iterdir()
    change(path / f"{file}.json", name, value)
    with pytest.raises(ConfigError, match=message) as caught:
        read(grid, tmp_path)
    assert "--workdir" not in str(caught.value)


def test_a_damaged_population(tmp_path):
    path = write_population(tmp_path, "even_pairs", [0.5], seeds="0")
    change(path / "results.json", "members")
    with pytest.raises(ConfigError, match="has no members: it is damaged"):
        read_saved(path)


def test_a_score_that_is_not_there(tmp_path):
    grid = make_grid(seeds=1, rows=["even_pairs"], score="bits")
    write(grid, tmp_path, [0.5, 0.5])
    with pytest.raises(ConfigError, match=r"has no bits in `final`; it has ac"):
        read(grid, tmp_path)


def test_a_run_is_saved_as_one(tmp_path):
    (run, *_) = make_grid().runs
    (saved,) = read_saved(write_run(tmp_path, run, {3: 1.0, 5: 0.5, 6: 0.5}))
    assert (saved.trainer, saved.config["seed"]) == ("algorithmic", 0)
    assert saved.results["final"]["score"] == 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "none"}, "--task cannot be 'none'"),
        ({"task": None}, "--task must be of type str; got None"),
        ({"test_lengths": 5}, "--test_lengths must be of type str; got 5"),
        ({"colour": 1}, "flags that this version does not know"),
    ],
)
def test_flags_that_are_damaged(changes, message):
    with pytest.raises(ConfigError, match=message):
        make_problem({"trainer": "algorithmic", "config": changes})
