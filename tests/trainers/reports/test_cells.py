import dataclasses
import math

import pytest

from tests.trainers.reports.toy_grid import make_grid, write_run
from trainers.reports.cells import find_best, find_floors, make_cells
from trainers.reports.reading import find_workdirs, read_saved, report_run
from trainers.sweeps.grids.grid import TIME

RATES = (1e-3, 1e-4)


def read(grid, root):
    paths = find_workdirs(root)
    runs = []
    for run in grid.runs:
        path = paths.get(run.digest)
        (saved,) = read_saved(path) if path else [None]
        runs.append(report_run(run, saved, grid))
    return runs


def write(grid, root, scores):
    """Writes a run for each run; `None`: not begun, `...`: unfinished."""
    for run, score in zip(grid.runs, scores, strict=True):
        if score is not None:
            found = None if score is ... else {3: 1, 5: score, 6: score + 0.1}
            write_run(root, run, found)


def test_statistics_by_hand(tmp_path):
    grid = make_grid(rows=["even_pairs"], columns=["RoPE"], rates=RATES)
    # Seed 0 at both rates, then seed 1.
    write(grid, tmp_path, [0.25, 0.4, 0.35, 0.2])
    (cell,) = make_cells(grid, read(grid, tmp_path))
    assert cell.value == pytest.approx(45)
    assert cell.deviation is None
    assert (cell.seeds, cell.learning_rates) == (2, 2)
    assert (cell.state, cell.finished) == ("complete", 4)
    assert cell.published.text == "51.0"

    changed = {"rates": RATES, "rows": ["even_pairs"], "columns": ["RoPE"]}
    lowest = make_grid(**changed, statistic="min", published=())
    (cell,) = make_cells(lowest, read(lowest, tmp_path))
    assert cell.value == pytest.approx(25)

    # Of both rates the means are 35 and 35: the first one.
    mean = make_grid(**changed, statistic="mean", published=())
    (cell,) = make_cells(mean, read(mean, tmp_path))
    assert cell.value == pytest.approx(35)
    # Squares of -5, 10, 5 and -10 over three.
    assert cell.deviation == pytest.approx((250 / 3) ** 0.5)


def test_the_best_learning_rate_has_the_best_mean_of_most_seeds(tmp_path):
    grid = make_grid(
        rows=["even_pairs"],
        columns=["RoPE"],
        seeds=3,
        rates=(1e-3, 1e-4, 1e-5),
        statistic="mean",
        chosen="learning_rate",
        published=("ruoss_2023_table_4",),
    )
    scores = [0.1, 0.3, 0.8, 0.2, 0.4, None, 0.3, 0.5, None]
    write(grid, tmp_path, scores)
    (cell,) = make_cells(grid, read(grid, tmp_path))
    assert cell.value == pytest.approx(45)
    assert cell.deviation == pytest.approx(10)
    assert len(cell.counted) == 3
    assert cell.state == "incomplete"


def test_states(tmp_path):
    grid = make_grid(rows=["even_pairs"], columns=["RoPE", "ALiBi", "NoPE"])
    write(grid, tmp_path, [None, None, ..., None, 0.5, ...])
    cells = make_cells(grid, read(grid, tmp_path))
    states = [cell.state for cell in cells]
    assert states == ["missing", "unfinished", "incomplete"]
    assert [cell.value for cell in cells[:2]] == [None, None]


def test_the_best_of_each_problem(tmp_path):
    grid = make_grid(seeds=1)
    # 50.01 and 50 are printed alike.
    write(grid, tmp_path, [0.4501, 0.45, 0.3, 0.2])
    cells = make_cells(grid, read(grid, tmp_path))
    assert find_best(grid, cells) == ({0, 1, 2}, {1, 3})
    lower = make_grid(seeds=1, higher_is_better=False)
    assert find_best(lower, cells)[0] == {0, 1, 3}


def test_lengths_have_cells_or_are_averaged(tmp_path):
    fields = {"score": "loss_by_length", "unit": "nats", "published": ()}
    grid = make_grid(seeds=1, rows=["even_pairs"], **fields, lengths=(3, 6))
    write(grid, tmp_path, [0.5, 0.7])
    cells = make_cells(grid, read(grid, tmp_path))
    assert [(p.column, p.length) for p in cells] == [
        *(("RoPE", 3), ("RoPE", 6)),
        *(("RandomizedRoPE", 3), ("RandomizedRoPE", 6)),
    ]
    assert [p.value for p in cells] == pytest.approx([1, 0.6, 1, 0.8])
    averaged = make_grid(seeds=1, rows=["even_pairs"], **fields)
    cells = make_cells(averaged, read(averaged, tmp_path))
    # Of 1, 0.5 and 0.6.
    assert cells[0].value == pytest.approx(0.7)


def test_floors_are_means_over_unseen_lengths(tmp_path):
    grid = make_grid(seeds=1, rows=["even_pairs"])
    write(grid, tmp_path, [0.5, None])
    assert find_floors(grid, read(grid, tmp_path)) == {
        "tokens without positions": 50,
        "positions without tokens": 40,
    }
    assert find_floors(grid, read(grid, tmp_path)[1:]) == {}


def test_a_number_is_from_the_first_file_that_has_one(tmp_path):
    files = ("ruoss_2023_table_1", "ruoss_2023_table_4", "confounding_table_b1")
    columns = ["RoPE", "LogKERPLE", "FIRE"]
    fields = {"rows": ["even_pairs"], "columns": columns, "published": files}

    def find(statistic):
        grid = make_grid(**fields, statistic=statistic)
        found = [p.published for p in make_cells(grid, read(grid, tmp_path))]
        return [number and (number.text, number.file) for number in found]

    assert find("max") == [("51.0", files[0]), ("100.0", files[2]), None]
    assert find("mean") == [("50.4", files[1]), None, None]


def test_a_flag_is_chosen_for_means_alone(tmp_path):
    fields = {"rows": ["even_pairs"], "columns": ["RoPE"], "rates": RATES}
    grid = make_grid(**fields, chosen="learning_rate")
    # The first rate has the best mean, the second one the best run.
    write(grid, tmp_path, [0.5, 0.2, 0.5, 0.7])
    runs = read(grid, tmp_path)
    (cell,) = make_cells(grid, runs)
    assert cell.value == pytest.approx(75)
    (cell,) = make_cells(grid.with_statistic("mean"), runs)
    assert cell.value == pytest.approx(55)
    assert cell.deviation == pytest.approx(0)


def test_columns_with_published_numbers_only(tmp_path):
    grid = make_grid(
        rows=["binary_multiplication"],
        columns=["GeometricAttention"],
        published=("ruoss_2023_table_5",),
        only_published={"best": "BestOfTable1"},
    )
    ours, theirs = make_cells(grid, read(grid, tmp_path))
    assert (ours.published.text, ours.published.doubt) == ("53.6", "")
    assert (theirs.state, theirs.runs) == ("published", ())
    assert theirs.published.text == "50.1"
    assert theirs.published.doubt == "Table 1 has 52.2 (RelativeEncoding)"
    assert find_best(grid, [ours, theirs]) == (set(), {0})


def test_hours_of_training(tmp_path):
    grid = make_grid(
        rows=["binary_addition"],
        columns=["RoPE"],
        score=TIME,
        unit="hours",
        statistic="mean",
        published=("ruoss_2023_table_2",),
    )
    write(grid, tmp_path, [0.4, 0.6])
    runs = read(grid, tmp_path)
    assert [run.curve for run in runs] == [{}, {}]
    (cell,) = make_cells(grid, runs)
    # Hours of training are twice the score, 0.45 and 0.65.
    assert cell.value == pytest.approx(1.1)
    # The paper prints this row twice.
    assert cell.published.text == "2.34"
    assert cell.published.deviation == "0.39"


def test_a_score_that_is_not_finite(tmp_path):
    grid = make_grid(seeds=2, rows=["even_pairs"], columns=["RoPE"])
    grid = dataclasses.replace(grid, statistic="mean")
    write(grid, tmp_path, [0.5, float("nan")])
    (cell,) = make_cells(grid, read(grid, tmp_path))
    assert math.isnan(cell.value) and math.isnan(cell.deviation)
