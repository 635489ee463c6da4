import pytest

from tests.trainers.reports import toy_grid
from tests.trainers.toy import change
from trainers.errors import ConfigError
from trainers.records.opened_run import make_problem
from trainers.reports.reading import read_saved, report_run

FOUR_MEMBERS = {"seeds": "0,4", "learning_rates": "1e-3,1e-4"}


@pytest.mark.parametrize(
    ("scores", "diverged"),
    [([0.9, 0.7, 0.5, 0.3], ()), ([0.9, 0.7, 0.5, 0.3], (1, 2)), (None, ())],
)
def test_members_of_a_population_are_runs(tmp_path, scores, diverged):
    toy_grid.write_population(
        *(tmp_path, "even_pairs", scores), diverged=diverged, **FOUR_MEMBERS
    )
    found = read_saved(tmp_path)
    pairs = [(s.config["seed"], s.config["learning_rate"]) for s in found]
    assert pairs == [(0, 1e-4), (4, 1e-4), (0, 1e-3), (4, 1e-3)]
    assert make_problem(vars(found[0])).title == "even_pairs"
    grid = toy_grid.make_grid()
    for number, saved in enumerate(found):
        assert saved.trainer == "algorithmic"
        run = report_run(grid.runs[0], saved, grid)
        assert run.finished == (scores is not None and number not in diverged)
        if run.finished:
            score = scores[number]
            assert run.scores[None] == pytest.approx(100 * score)
            assert run.curve == {5: score, 6: score}
            assert run.results["steps"] == saved.config["steps"]


BROKEN = {"score": "x", "accuracy_by_length": {"5": [1]}}


@pytest.mark.parametrize(
    ("file", "name", "value", "message"),
    [
        ("results", "score_metric", ..., "has no score_metric: it is damaged"),
        ("results", "score_metric", 5, "cannot be read: it is damaged"),
        ("results", "floor_by_length", None, "cannot be read: it is damaged"),
        ("results", "floor_by_length", {"5": "x"}, "cannot be read: it is dam"),
        ("results", "final", 3, "is damaged or of another version"),
        ("results", "final", {"score": "x"}, "has no accuracy_by_length"),
        ("results", "final", BROKEN, "cannot be read: it is damaged"),
        ("results", "final", {"bits": 1}, "has no score in `final`; it has bi"),
        ("config", "trainer", "other", "is of an unknown trainer, other"),
        ("config", "config", {"colour": 1}, "that this version does not know"),
    ],
)
def test_damage_is_one_clear_message(tmp_path, file, name, value, message):
    grid = toy_grid.make_row()
    toy_grid.write_runs(tmp_path, grid, [0.5])
    (path,) = (tmp_path / "runs").iterdir()
    change(path / f"{file}.json", **{name: value})
    with pytest.raises(ConfigError, match=message) as caught:
        toy_grid.read_runs(tmp_path, grid)
    assert "--workdir" not in str(caught.value)
