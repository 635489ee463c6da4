"""Runs of no grid in one report."""

import pathlib

import pytest

from tests.trainers.toy import toy_config
from trainers.errors import ConfigError
from trainers.reports.reading import Saved
from trainers.reports.runs import make_grid


def save(name, digest, metric="nats_per_byte", **changes):
    """A finished run on text."""
    config = vars(toy_config("enwik8", **changes))
    results = {
        "trainer": "enwik8",
        "config": config,
        "score_metric": metric,
        "final": {},
        "data_digest": digest,
    }
    return Saved(pathlib.Path(name), "enwik8", config, results)


FIRST = save("a", "sha256:1")


def test_runs_that_cannot_be_compared():
    other = save("b", "sha256:2", encoding="ALiBi")
    message = "^a and b are on different data: report runs on the same data.$"
    with pytest.raises(ConfigError, match=message):
        make_grid([FIRST, other], "")
    other = save("b", "sha256:1", metric="loss")
    message = "have different metrics, loss, nats_per_byte: report runs with"
    with pytest.raises(ConfigError, match=message):
        make_grid([FIRST, other], "")


def test_rows_have_data_of_their_own_and_columns_the_flags_that_differ():
    runs = [
        FIRST,
        save("b", "sha256:1", encoding="ALiBi", data_dir="elsewhere"),
        save("c", "sha256:2", dataset="python_source", seed=5, dropout=0.5),
        # An older version kept no digest there.
        save("d", ""),
    ]
    grid = make_grid(runs, "")
    assert [(run.row, run.column) for run in grid.runs] == [
        ("files", "RoPE, dropout=0.0"),
        ("files", "ALiBi, dropout=0.0"),
        ("python_source", "RoPE, dropout=0.5"),
        ("files", "RoPE, dropout=0.0"),
    ]
    assert (grid.statistic, grid.unit) == ("mean", "")
    assert not grid.higher_is_better
    assert make_grid(runs, "confounding_table_1").statistic == "min"
