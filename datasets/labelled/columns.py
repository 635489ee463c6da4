"""Inputs and targets in the columns of rows."""

import dataclasses

from datasets.labelled.rows import LabelledError

MOST_TOKENS = 2**20
"""Largest number of tokens of an input or an answer."""


@dataclasses.dataclass(frozen=True)
class Columns:
    """Names of the columns that examples are read from.

    Attributes:
        input: str. Column of the input.
        target: str. Column of the target.
        length: str. Column of the length; empty: the length is the number of
            tokens of the input.
    """

    input: str = ""
    target: str = ""
    length: str = ""

    def find(self, names):
        """Returns the `Columns` with names in place of empty ones.

        The input and the target are by default the columns `input` and
        `target`, or the first and the second of two columns.

        Args:
            names: List of str. Names of the columns of a row.

        Raises:
            LabelledError: If there are no such columns.
        """
        found = dataclasses.asdict(self)
        known = {"input": "input", "target": "target"}
        if not {*known.values()} <= {*names} and len(names) == 2:
            known = dict(zip(known, names, strict=True))
        for role, default in known.items():
            if not found[role]:
                found[role] = default if default in names else ""
        listed = ", ".join(map(str, names))
        for role, name in found.items():
            if not name and role != "length":
                raise LabelledError(
                    f"the columns are {listed}: name the one of the {role} by "
                    f"--{role}."
                )
            if name and name not in names:
                raise LabelledError(
                    f"there is no column {name[:80]!r} of --{role}: the "
                    f"columns are {listed}."
                )
        if found["input"] == found["target"]:
            raise LabelledError(
                f"--input and --target are the same column, {found['input']!r}."
            )
        return Columns(**found)

    def read(self, row):
        """Returns the input, the target and the length of a row.

        Returns:
            The input and the target, each a str or a list of str, and what
            the length is found from: an int, a str or a list of str; `None`
            without a column of it.

        Raises:
            LabelledError: If the row lacks one, or it is of another type.
        """
        found = _read_text(row, self.input), _read_text(row, self.target)
        if not self.length:
            return *found, None
        value = row.get(self.length)
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if not 1 <= value <= MOST_TOKENS:
                raise LabelledError(
                    f"its {self.length!r} is {value}, instead of a length "
                    f"from 1 to {MOST_TOKENS:,}"
                )
            return *found, value
        return *found, _read_text(row, self.length)


def _read_text(row, name):
    """Returns a column of a row, a str or a list of str."""
    value = row.get(name)
    if name not in row or value is None:
        raise LabelledError(f"it has no {name!r}")
    if isinstance(value, list):
        return [_read_item(item, name) for item in value] or _refuse_empty(name)
    found = _read_item(value, name)
    return found if found.strip() else _refuse_empty(name)


def _refuse_empty(name):
    raise LabelledError(f"its {name!r} is empty")


def _read_item(value, name):
    if isinstance(value, bool | int):
        return str(value)
    if not isinstance(value, str):
        kind = type(value).__name__
        problem = f"its {name!r} is of type {kind}, instead of text"
        if isinstance(value, float):
            problem = (
                f"its {name!r} is {value}, a number with a fraction, instead "
                "of text or an integer"
            )
        raise LabelledError(problem)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise LabelledError(
            f"its {name!r} is not text in UTF-8 (convert the file, as by "
            "iconv -f LATIN1 -t UTF-8)"
        ) from None
    return value
