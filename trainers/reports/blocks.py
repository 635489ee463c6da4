"""What a report consists of, whatever format it is written in."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Heading:
    """A heading of a section."""

    text: str


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """A paragraph of plain text."""

    text: str


@dataclasses.dataclass(frozen=True)
class Code:
    """Lines of Python code."""

    text: str


@dataclasses.dataclass(frozen=True)
class Entry:
    """An entry of a table.

    Attributes:
        text: str. Our number, or why there is none; empty: there are no runs.
        best: bool. Whether it is the best of its problem.
        published: str. The published number, or empty.
        published_best: bool. Whether that is the best published one.
        marks: str. Signs of footnotes on our number.
        published_marks: str. Signs of footnotes on the published number.
        state: str. The `state` of its `Cell`; empty: it is no result.
    """

    text: str
    best: bool = False
    published: str = ""
    published_best: bool = False
    marks: str = ""
    published_marks: str = ""
    state: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        head: Tuple of str.
        rows: List of tuples; the first item of each, a str, names the row, and
            the others are `Entry`s.
    """

    head: tuple
    rows: list


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture.

    Attributes:
        name: str. Name of its file.
        text: str. What it shows.
        content: bytes of a PNG file.
    """

    name: str
    text: str
    content: bytes


@dataclasses.dataclass(frozen=True)
class Curves:
    """Curves that a reader of HTML chooses among, and pictures of all.

    Attributes:
        panels: List of `trainers.reports.chart.Panel`s.
        pictures: List of a `Picture` for each of them.
    """

    panels: list
    pictures: list
