"""Statistics, states and published numbers of the cells of a table."""

import pytest

from tests.trainers.reports.toy_grid import make_grid, make_row, write_runs
from trainers.reports.cells import find_best, find_floors, make_cells
from trainers.sweeps.grids.grid import TIME

RATES = (1e-3, 1e-4)
# Of seed 0 at both rates, then of seed 1.
FOUR = [0.25, 0.4, 0.35, 0.2]
# The first rate has the best mean, the second one the best run.
UNLIKE = [0.5, 0.2, 0.5, 0.7]
NAN = float("nan")
MEAN = {"statistic": "mean"}
BEST_RATE = {"rates": RATES, "chosen": "learning_rate"}
BEST_MEAN = {**BEST_RATE, **MEAN}
LOSS = {"score": "loss_by_length", "unit": "nats"}


@pytest.mark.parametrize(
    ("scores", "fields", "value", "deviation"),
    [
        # The score is 0.05 more.
        (FOUR, {"rates": RATES}, 45, None),
        (FOUR, {"rates": RATES, "statistic": "min"}, 25, None),
        # Squares of -5, 10, 5 and -10 over three.
        (FOUR, {"rates": RATES, **MEAN}, 35, (250 / 3) ** 0.5),
        (UNLIKE, BEST_RATE, 75, None),
        (UNLIKE, BEST_MEAN, 55, 0),
        (UNLIKE, {**BEST_MEAN, "higher_is_better": False}, 50, 1250**0.5),
        # The best mean of most seeds.
        ([0.3, 0.8, 0.4, None], BEST_MEAN, 40, 50**0.5),
        ([0.5, None], MEAN, 55, None),
        ([0.5, NAN], MEAN, NAN, NAN),
        ([..., None], MEAN, None, None),
        # Of lengths 3, 5 and 6.
        ([0.5, None], LOSS, 1.6 / 3 + 0.5 / 3, None),
        # Hours are twice the score.
        ([0.4, 0.6], {**MEAN, "score": TIME, "unit": "hours"}, 1.1, 0.08**0.5),
    ],
)
def test_statistics(tmp_path, scores, fields, value, deviation):
    grid = make_row(seeds=2, **fields)
    (cell,) = make_cells(grid, write_runs(tmp_path, grid, scores))
    for found, expected in ((cell.value, value), (cell.deviation, deviation)):
        if expected is None:
            assert found is None
        else:
            assert found == pytest.approx(expected, nan_ok=True)


def test_the_best_of_each_problem(tmp_path):
    grid = make_grid(seeds=1)
    # 50.01 and 50 are printed alike.
    runs = write_runs(tmp_path, grid, [0.4501, 0.45, 0.3, 0.2])
    assert find_best(grid, make_cells(grid, runs)) == ({0, 1, 2}, {1, 3})
    lower = make_grid(seeds=1, higher_is_better=False)
    assert find_best(lower, make_cells(lower, runs)) == ({0, 1, 3}, {0, 2})


def test_floors_are_means_over_unseen_lengths(tmp_path):
    grid = make_row(seeds=2)
    runs = write_runs(tmp_path, grid, [0.5, None])
    assert find_floors(grid, runs) == {
        "order-blind baseline": 50,
        "input-blind baseline": 40,
    }
    assert find_floors(grid, runs[1:]) == {}
    assert find_floors(make_row(**LOSS), runs) == {}


TABLES = {n: f"ruoss_2023_table_{n}" for n in (1, 2, 4, 5)}
FIRST_OF = (TABLES[1], TABLES[4], "confounding_table_b1")


@pytest.mark.parametrize(
    ("fields", "published"),
    [
        (
            {"published": FIRST_OF, "columns": ["RoPE", "LogKERPLE", "FIRE"]},
            [("51.0", TABLES[1]), ("100.0", FIRST_OF[2]), None],
        ),
        ({**MEAN, "published": FIRST_OF}, [("50.4", TABLES[4])]),
        # The paper prints this row twice.
        (
            {**MEAN, "rows": ["binary_addition"], "published": (TABLES[2],)},
            [("2.34", TABLES[2])],
        ),
    ],
)
def test_a_number_is_from_the_first_file_that_has_one(
    tmp_path, fields, published
):
    grid = make_row(**fields)
    runs = write_runs(tmp_path, grid, [None] * len(published))
    numbers = [cell.published for cell in make_cells(grid, runs)]
    found = [number and (number.text, number.file) for number in numbers]
    assert found == published


def test_columns_with_published_numbers_only(tmp_path):
    grid = make_row(
        rows=["binary_multiplication"],
        columns=["GeometricAttention"],
        published=(TABLES[5],),
        only_published={"best": "BestOfTable1"},
    )
    ours, theirs = make_cells(grid, write_runs(tmp_path, grid, [None]))
    assert (ours.published.text, ours.published.doubt) == ("53.6", "")
    assert (theirs.state, theirs.runs) == ("published", ())
    assert theirs.published.text == "50.1"
    assert theirs.published.doubt == "Table 1 has 52.2 (RelativeEncoding)"
    assert find_best(grid, [ours, theirs]) == (set(), {0})
