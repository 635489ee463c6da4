"""Published numbers, and the settings that they were measured in."""

import csv
import dataclasses
import functools
import pathlib

DIRECTORY = pathlib.Path(__file__).parents[2] / "benchmarks" / "published"
"""Files of numbers; README.md beside them describes their columns."""

DOUBT = "doubt:"
"""In a note, the rest says why the number may not be right."""

PAPERS = {
    "ruoss_2023": "Ruoss et al., 2023",
    "confounding": "Confounding effects",
    "warping": "Position index warping",
    "kazemnejad_2023": "Kazemnejad et al., 2023",
}
"""What reports call the papers in the column `paper`."""


@dataclasses.dataclass(frozen=True)
class PublishedNumber:
    """A number of a paper.

    Attributes:
        text: str. The number as printed, such as `"96.0"`.
        file: str. Name of its file, without `.csv`.
        statistic: str, as in the file: `"max"`, `"min"`, `"mean"` or `"value"`.
        deviation: str. Its standard deviation, as printed, or empty.
        trained_length: str. Trained lengths, such as `"1-40"`, or empty.
        evaluated_length: str. Evaluated lengths, or empty.
        note: str. What to know of it, or empty.
    """

    text: str
    file: str = ""
    statistic: str = ""
    deviation: str = ""
    trained_length: str = ""
    evaluated_length: str = ""
    note: str = ""

    @property
    def value(self):
        """The number, a float."""
        return float(self.text)

    @property
    def decimals(self):
        """Number of digits behind the decimal point."""
        return len(self.text.partition(".")[2])

    @property
    def doubt(self):
        """Why it may not be right, a str; empty: there is no doubt."""
        return self.note.partition(DOUBT)[2].strip()


def list_published():
    """Returns the names of all files of numbers, without `.csv`."""
    names = sorted(path.stem for path in DIRECTORY.glob("*.csv"))
    return [name for name in names if name != "settings"]


def list_tables():
    """Returns the names of the tables of results at lengths, without `.csv`."""
    return [
        name
        for name in list_published()
        if not name.endswith("_text")
        and any(row["evaluated_length"] for row in read_published(name))
    ]


@functools.cache
def read_published(name):
    """Reads a file of numbers.

    Args:
        name: str, of `list_published`, with or without `.csv`.

    Returns:
        List of dicts from the names of columns to str.

    Raises:
        ValueError: If there is no such file.
    """
    name = name.removesuffix(".csv")
    if name not in list_published():
        raise ValueError(
            f"published must be one of {', '.join(list_published())}; got "
            f"{name!r}."
        )
    return _read(DIRECTORY / f"{name}.csv")


def find_published(name, statistic, **wanted):
    """Finds a number of a file.

    Args:
        name: str, of `list_published`.
        statistic: `"max"`, `"min"` or `"mean"`. A number that the file calls a
            `"value"` is found as each of them.
        **wanted: What columns say, str. Of `note` it is enough to give a part.
            An empty cell of the file, other than a note, suits everything.

    Returns:
        The `PublishedNumber`; `None` if the file has none.

    Raises:
        ValueError: If there is no such file or column, or several numbers
            suit.
    """
    rows = read_published(name)
    if not wanted.keys() <= rows[0].keys():
        raise ValueError(
            f"published numbers have the columns {', '.join(rows[0])}; got "
            f"{', '.join(wanted)}."
        )
    rows = [row for row in rows if _suits(row, wanted) and row["value"]]
    numbers = [row for row in rows if row["statistic"] in (statistic, "value")]
    if not numbers:
        return None
    # A paper may print a row twice.
    different = {
        tuple(text for column, text in row.items() if column != "note")
        for row in numbers
    }
    if len(different) > 1:
        raise ValueError(
            f"{name} has {len(numbers)} numbers for {wanted}: give more "
            "columns, or a part of the note."
        )
    row = numbers[0]
    spread = {r["value"] for r in rows if r["statistic"] == "std"}
    return PublishedNumber(
        row["value"],
        name.removesuffix(".csv"),
        row["statistic"],
        spread.pop() if statistic == "mean" and len(spread) == 1 else "",
        row["trained_length"],
        row["evaluated_length"],
        row["note"],
    )


def name_table(name):
    """Returns what reports call the table of a file, a str.

    >>> name_table("ruoss_2023_table_4")
    'Ruoss et al., 2023, Table 4'
    """
    first = read_published(name)[0]
    return f"{PAPERS[first['paper']]}, {first['table']}"


def find_statistic(name):
    """Returns which statistic a file has, `"max"`, `"min"` or `"mean"`."""
    found = {row["statistic"] for row in read_published(name)}
    return next((one for one in ("max", "min") if one in found), "mean")


def find_setting(name):
    """Returns what settings.csv says of a file of numbers.

    Returns:
        Dict from names such as `"seeds"` to numbers; what the paper does not
        say is missing.
    """
    rows = _read(DIRECTORY / "settings.csv")
    found = next((row for row in rows if row["file"] == name), {})
    return {
        column: int(value)
        for column, value in found.items()
        if column != "file" and value
    }


def _read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _suits(row, wanted):
    return all(
        value in row[column] if column == "note" else row[column] in ("", value)
        for column, value in wanted.items()
    )
