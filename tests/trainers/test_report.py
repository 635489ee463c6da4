"""Reports: a table beside the published one, curves, and one page."""

import csv
import io

import pytest

from tests.trainers.reports.toy_grid import make_grid, write_run, write_runs
from trainers import report
from trainers.errors import ConfigError
from trainers.reports.options import ReportConfig
from trainers.sweeps.grids import GRIDS
from trainers.sweeps.overrides import with_overrides


def use(monkeypatch, grid):
    monkeypatch.setitem(GRIDS, "toy", {"small": grid}.get)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The directory of a sweep of a toy grid, most of which has run."""
    grid = make_grid()
    # The mean of lengths 5 and 6 is 0.05 more.
    scores = [0.85, 0.65, 0.9, None, 0.45, ..., None, None]
    write_runs(tmp_path, grid, scores)
    use(monkeypatch, grid)
    return tmp_path


def read_lines(path):
    return (path / "report.md").read_text().splitlines()


def test_a_grid(root, capsys):
    report.main(ReportConfig(grid="toy", root=str(root)))
    output = capsys.readouterr().out.splitlines()
    assert output == [
        "4 of 8 runs have finished",
        f"report: {root}/report/report.html",
    ]
    lines = read_lines(root / "report")
    assert lines[0] == "# Toy: accuracy"
    rows = [line for line in lines if line.startswith(("| even", "| reverse"))]
    assert rows == [
        "| even_pairs | 90.0† (51.0) | **95.0†‡** (**100.0**) | 50.0 | 40.0 |",
        "| reverse_string | **50.0†‡** (51.9) | missing, 0 of 2 (**69.9**) | "
        "50.0 | 40.0 |",
        "| even_pairs | 80.0 ± 14.1† (50.4 ± 0.3) | **95.0†‡** "
        "(**100.0 ± 0.0**) | 50.0 | 40.0 |",
        "| reverse_string | **50.0†‡** (51.2 ± 0.3) | missing, 0 of 2 "
        "(**67.7 ± 1.1**) | 50.0 | 40.0 |",
    ]
    assert sum("‡ 1 of 2 runs have finished." in line for line in lines) == 2
    assert "| evaluated length | 5,6 | 41-500 |" in lines
    for task in ("even_pairs", "reverse_string"):
        path = root / "report" / f"algorithmic-{task}.png"
        assert f"![{task}: accuracy at each length]({path.name})" in lines
        assert path.exists()

    text = (root / "report" / "report.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    names = ("value", "published", "state", "maximum", "minimum", "mean")
    names += ("deviation", "runs_of_mean")
    assert [[row[name] for name in names] for row in rows] == [
        ["90", "51.0", "complete", "90", "70", "80", "14.1421", "2"],
        ["95", "100.0", "incomplete", "95", "95", "95", "", "1"],
        ["50", "51.9", "incomplete", "50", "50", "50", "", "1"],
        ["", "69.9", "missing", "", "", "", "", "0"],
    ]
    wanted = {
        "seeds": "2",
        "published_seeds": "10",
        "published_parameters": "249026",
        "published_mean": "50.4",
        "published_deviation": "0.3",
    }
    assert wanted.items() <= rows[0].items()


def test_runs(tmp_path):
    grid = make_grid(rows=["even_pairs"], rates=(1e-3, 1e-4))
    paths = [
        write_run(tmp_path, run, {3: 1.0, 5: 0.5 + 0.1 * n, 6: 0.5 + 0.1 * n})
        for n, run in enumerate(grid.runs[:4])
    ]
    config = ReportConfig(
        published="ruoss_2023_table_4", output=str(tmp_path / "out")
    )
    report.main(config, *map(str, paths))
    with pytest.raises(ConfigError, match="out has a report of other runs"):
        report.main(config, str(paths[0]))
    lines = read_lines(tmp_path / "out")
    assert lines[10].startswith(
        "|  | RoPE, learning_rate=0.001 | RoPE, learning_rate=0.0001 |"
    )
    # Means of 50 and 70, of 60 and 80.
    assert lines[12].startswith(
        "| even_pairs | 60.0 ± 14.1† (**50.4 ± 0.3**) | "
        "**70.0 ± 14.1†** (**50.4 ± 0.3**) |"
    )


def test_a_grid_with_further_flags(tmp_path, monkeypatch):
    grid = make_grid(seeds=1, rows=["even_pairs"])
    use(monkeypatch, grid)
    flags = "steps=7,test_lengths=5,6,checkpoint_every=3"
    given = {"steps": "7", "test_lengths": "5,6"}
    for run in with_overrides(grid.runs, given)[0]:
        write_run(tmp_path, run, {3: 1.0, 5: 0.5, 6: 0.5}, step=7)
    report.main(ReportConfig(grid="toy", root=str(tmp_path), flags=flags))
    text = "\n".join(read_lines(tmp_path / "report"))
    assert "2 of 2 runs have finished." in text
    assert f"Further flags of all runs: {flags}." in text
    assert "| steps | 7 | 2,000,000 |" in text


def test_mistakes(root, tmp_path):
    def refuse(message, *runs, **flags):
        with pytest.raises(ConfigError, match=message):
            report.main(ReportConfig(**flags), *runs)

    refuse("expected either --grid or RUN")
    refuse("is not the working directory", str(tmp_path))
    refuse("--grid cannot be 'toi'", grid="toi")
    message = "there is no .*none: run `python -m trainers.sweep --grid=toy"
    refuse(message, grid="toy", root=str(tmp_path / "none"))
    run = str(next((root / "runs").iterdir()))
    file = f"{run}/results.json"
    message = "is not a directory that can be read: choose another --root"
    refuse(message, grid="toy", root=file)
    message = "cannot write to .*: File exists. Choose another --output"
    refuse(message, run, output=file)


def test_flags_that_cannot_be():
    grid = {"grid": "ruoss_table_1"}
    for flags, message in (
        ({**grid, "published": "ruoss_2023_table_1"}, "published is for a R"),
        ({**grid, "flags": "steps"}, "--flags takes names with values"),
        ({"flags": "steps=7"}, "has no effect without --grid"),
        ({"size": "paper"}, "--size has no effect without"),
    ):
        with pytest.raises(ConfigError, match=message):
            ReportConfig(**flags).validate()
