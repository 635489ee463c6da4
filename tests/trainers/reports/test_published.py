import csv

import pytest

from trainers.reports.published import (
    DIRECTORY,
    PublishedNumber,
    find_published,
    find_setting,
    find_statistic,
    list_published,
    list_tables,
    name_table,
    read_published,
)
from trainers.sweeps.grids import find_match
from trainers.sweeps.grids.matching import match_task


@pytest.mark.parametrize(
    ("file", "statistic", "cell", "length", "printed"),
    [
        ("ruoss_2023_table_1", "max", ("bucket_sort", "RoPE"), "", "30.6"),
        ("ruoss_2023_table_1", "max", ("even_pairs", "NoPE"), "", "50.4"),
        ("ruoss_2023_table_3", "max", ("even_pairs", "unsorted"), "", "50.4"),
        ("ruoss_2023_table_3", "max", ("even_pairs", "sorted"), "", "100.0"),
        (
            *("ruoss_2023_table_5", "max"),
            *(("modular_arithmetic", "GeometricAttention"), "", "43.6"),
        ),
        (
            *("confounding_table_1", "min"),
            *(("ALiBi", "randomized"), "1024", "1603.4"),
        ),
        ("confounding_table_2", "min", ("RoPE", "RoPE"), "256", "215.2"),
        (
            *("confounding_table_2", "min"),
            *(("RoPE", "randomized RoPE"), "256", "219.6"),
        ),
        (
            *("confounding_table_2", "min"),
            *(("RoPE", "not fine-tuned"), "1024", "4259.9"),
        ),
        ("confounding_table_3", "min", ("ALiBi", "plain"), "2025", "7.120"),
        (
            *("warping_table_3", "min"),
            *(("RandomizedRoPE, 8072", ""), "1024", "65.72"),
        ),
        ("warping_table_3", "min", ("WarpedRoPE", ""), "4096", "19.00"),
        (
            *("warping_table_a", "mean"),
            *(("copy", "RandomizedRoPE, 5M"), "", "8.8"),
        ),
        ("warping_table_b", "min", ("alpha = 1/2", ""), "3072", "26.22"),
    ],
)
def test_cells_have_their_number(file, statistic, cell, length, printed):
    wanted = find_match(file)(*cell)
    if length:
        wanted["evaluated_length"] = length
    found = find_published(f"{file}.csv", statistic, **wanted)
    assert found.text == printed
    assert found.value == float(printed)


def test_a_mean_has_its_deviation():
    wanted = match_task("even_pairs", "NoPE")
    found = find_published("ruoss_2023_table_4", "mean", **wanted)
    assert (found.text, found.deviation) == ("50.1", "0.1")
    assert (found.trained_length, found.evaluated_length) == ("1-40", "41-500")
    assert found.decimals == 1


def test_doubts_are_told_from_other_notes():
    doubts = {
        (name, find_doubt(row["note"]))
        for name in list_published()
        for row in read_published(name)
    } - {(name, "") for name in list_published()}
    assert ("ruoss_2023_table_5", "Table 4 has 99.4") in doubts
    assert len(doubts) == 10
    numbers = [row for row in read_published("warping_table_3") if row["value"]]
    doubted = [row for row in numbers if find_doubt(row["note"])]
    # Those of the method, and of the largest maximum position.
    assert len(doubted) == 10


def find_doubt(note):
    return PublishedNumber("1", note=note).doubt


def test_names_of_tables():
    assert name_table("confounding_table_b1") == (
        "Confounding effects, Table B.1"
    )
    for name in list_published():
        assert name_table(name)


def test_what_is_not_printed_is_not_found():
    wanted = find_match("confounding_table_1")("NoPE", "randomized")
    found = find_published(
        "confounding_table_1", "min", **wanted, evaluated_length="256"
    )
    assert found is None


def test_mistakes():
    with pytest.raises(ValueError, match=r"has 11 numbers for .*even_pairs"):
        find_published(
            "ruoss_2023_table_1", "max", task_or_dataset="even_pairs"
        )
    with pytest.raises(ValueError, match=r"must be one of .*; got 'table'"):
        find_published("table", "max")
    with pytest.raises(ValueError, match=r"have the columns paper, .*; got x"):
        find_published("ruoss_2023_table_1", "max", x="")


def test_every_file_is_whole():
    columns = set(read_published("ruoss_2023_table_1")[0])
    for name in list_published():
        rows = read_published(name)
        assert set(rows[0]) == columns
        for row in rows:
            assert row["value"] or row["note"], row
            float(row["value"] or 0)
        statistics = {row["statistic"] for row in rows}
        assert statistics <= {"max", "min", "mean", "std", "value"}
    with (DIRECTORY / "settings.csv").open() as file:
        names = {row["file"] for row in csv.DictReader(file)}
    assert names <= {*list_published()}


def test_tables_of_results():
    tables = list_tables()
    assert {"ruoss_2023_table_1", "warping_table_a"} <= {*tables}
    left_out = ("ruoss_2023_text", "ruoss_2023_table_2", "kazemnejad_table_2")
    assert not {*left_out} & {*tables}


def test_settings():
    setting = find_setting("ruoss_2023_table_1")
    assert setting["seeds"] == 10
    assert setting["steps"] == 2_000_000
    assert "seeds" not in find_setting("warping_table_3")
    assert find_setting("") == {}
    assert find_statistic("ruoss_2023_table_4") == "mean"
    assert find_statistic("confounding_table_1") == "min"
