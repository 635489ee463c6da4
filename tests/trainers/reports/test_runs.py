"""Runs of no grid in one report."""

import pathlib

import pytest

from tests.trainers.toy import toy_config
from trainers.errors import ConfigError
from trainers.reports.reading import Saved
from trainers.reports.runs import make_grid


def save(name, digest, **changes):
    """A finished run on text."""
    config = vars(toy_config("enwik8", **changes))
    results = {
        "trainer": "enwik8",
        "config": config,
        "score_metric": "nats_per_byte",
        "final": {},
        "data_digest": digest,
    }
    return Saved(pathlib.Path(name), "enwik8", config, results)


def test_a_row_has_the_same_data():
    runs = [save("a", "sha256:1"), save("b", "sha256:2", encoding="ALiBi")]
    with pytest.raises(ConfigError) as caught:
        make_grid(runs, "")
    assert str(caught.value) == (
        "a and b are on different data: report runs on the same data."
    )


def test_rows_have_data_of_their_own():
    runs = [
        save("a", "sha256:1"),
        save("b", "sha256:1", encoding="ALiBi", data_dir="elsewhere"),
        save("c", "sha256:2", dataset="python_source"),
        # An older version kept no digest there.
        save("d", ""),
    ]
    grid = make_grid(runs, "")
    assert [run.row for run in grid.runs] == [
        *("files", "files", "python_source", "files"),
    ]
