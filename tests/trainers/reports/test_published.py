"""Published numbers: each is found by what the paper prints of it."""

import csv

from trainers.reports import published
from trainers.sweeps.grids import find_match

RUOSS = "ruoss_2023_table"
CONFOUNDING = "confounding_table"
GEOMETRIC = ("modular_arithmetic", "GeometricAttention")
UP_TO_8072 = ("RandomizedRoPE, 8072", "")
COPIES = ("copy", "RandomizedRoPE, 5M")


def test_cells_have_their_number():
    for file, statistic, cell, length, printed in (
        (f"{RUOSS}_1", "max", ("bucket_sort", "RoPE"), "", "30.6"),
        (f"{RUOSS}_1", "max", ("even_pairs", "NoPE"), "", "50.4"),
        (f"{RUOSS}_3", "max", ("even_pairs", "unsorted"), "", "50.4"),
        (f"{RUOSS}_3", "max", ("even_pairs", "sorted"), "", "100.0"),
        (f"{RUOSS}_5", "max", GEOMETRIC, "", "43.6"),
        (f"{CONFOUNDING}_1", "min", ("ALiBi", "randomized"), "1024", "1603.4"),
        # It is not printed.
        (f"{CONFOUNDING}_1", "min", ("NoPE", "randomized"), "256", None),
        (f"{CONFOUNDING}_2", "min", ("", "RoPE"), "256", "215.2"),
        (f"{CONFOUNDING}_2", "min", ("", "randomized RoPE"), "256", "219.6"),
        (f"{CONFOUNDING}_2", "min", ("", "not fine-tuned"), "1024", "4259.9"),
        (f"{CONFOUNDING}_3", "min", ("ALiBi", "plain"), "2025", "7.120"),
        ("warping_table_3", "min", UP_TO_8072, "1024", "65.72"),
        ("warping_table_3", "min", ("WarpedRoPE", ""), "4096", "19.00"),
        ("warping_table_a", "mean", COPIES, "", "8.8"),
        ("warping_table_b", "min", ("alpha = 1/2", ""), "3072", "26.22"),
    ):
        wanted = find_match(file)(*cell)
        if length:
            wanted["evaluated_length"] = length
        found = published.find_published(f"{file}.csv", statistic, **wanted)
        assert (found and found.text) == printed, cell
        assert found is None or found.value == float(printed)


def find_doubts(name):
    rows = [row for row in published.read_published(name) if row["value"]]
    doubts = (
        published.PublishedNumber("1", note=row["note"]).doubt for row in rows
    )
    return [doubt for doubt in doubts if doubt]


def test_doubts_are_told_from_other_notes():
    doubts = {name: {*find_doubts(name)} for name in published.list_published()}
    assert "Table 4 has 99.4" in doubts[f"{RUOSS}_5"]
    assert sum(map(len, doubts.values())) == 10
    # Those of the method, and of the largest maximum position.
    assert len(find_doubts("warping_table_3")) == 10


def test_every_file_is_whole():
    columns = set(published.read_published(f"{RUOSS}_1")[0])
    for name in published.list_published():
        rows = published.read_published(name)
        assert set(rows[0]) == columns
        for row in rows:
            assert row["value"] or row["note"], row
            float(row["value"] or 0)
        statistics = {row["statistic"] for row in rows}
        assert statistics <= {"max", "min", "mean", "std", "value"}
        assert published.name_table(name)
    with (published.DIRECTORY / "settings.csv").open() as file:
        names = {row["file"] for row in csv.DictReader(file)}
    assert names <= {*published.list_published()}


def test_settings():
    setting = published.find_setting(f"{RUOSS}_1")
    assert (setting["seeds"], setting["steps"]) == (10, 2_000_000)
    assert "seeds" not in published.find_setting("warping_table_3")
    assert published.find_setting("") == {}
    assert published.find_statistic(f"{RUOSS}_1") == "max"
    assert published.find_statistic(f"{RUOSS}_4") == "mean"
    assert published.find_statistic(f"{CONFOUNDING}_1") == "min"
