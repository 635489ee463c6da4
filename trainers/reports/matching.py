"""Which published number belongs to a place of a table.

Each file has a function that takes the row and the column of a grid with this
file in its `published`, and returns what columns of the file say of the place.
Of the column `note` it returns a part.
"""

RANDOMIZED = "Randomized"
"""Beginning of the names of encodings with randomized positions."""

NOTES = {
    "sorted": "with sorting",
    "unsorted": "without sorting",
    "sqrt": "function sqrt",
    "beta": "function beta",
    "10M": "(10M)",
    "5M": "(5M)",
    "3M": "(3M)",
}
"""Parts of notes, by what tables call them."""


def match_place(file, row, column):
    """Returns what the columns of a file say of a place, a dict.

    Args:
        file: str. Name of the file, without `.csv`.
        row: str. Row of the table.
        column: str. Its column.

    >>> match_place("ruoss_2023_table_1", "even_pairs", "RandomizedRoPE")
    ... # doctest: +NORMALIZE_WHITESPACE
    {'task_or_dataset': 'even_pairs', 'model_or_encoding': 'RoPE',
     'randomized': 'yes'}
    """
    match = MATCHES.get(file, match_task)
    return match(row, column)


def match_encoding(name):
    """Returns the columns of an encoding such as `RandomizedRoPE, 10M`.

    Flags behind the name, such as `RoPE, steps=100`, are ours alone.
    """
    encoding, _, detail = name.partition(", ")
    detail = "" if "=" in detail else detail
    note = f"maximum position {detail}" if detail.isdecimal() else detail
    return {
        "model_or_encoding": encoding.removeprefix(RANDOMIZED),
        "randomized": "yes" if encoding.startswith(RANDOMIZED) else "no",
        **({"note": NOTES.get(note, note)} if note else {}),
    }


def match_task(row, column):
    """Matches tasks by encodings."""
    return {"task_or_dataset": row, **match_encoding(column)}


def match_form(row, column):
    """Matches encodings by the columns `plain` and `randomized`."""
    randomized = {"plain": "no", "randomized": "yes"}
    return {
        "model_or_encoding": row,
        "randomized": randomized.get(column, column),
    }


def match_method(row, column):
    """Matches rows of encodings; the columns are lengths."""
    return match_encoding(row)


MATCHES = {
    "ruoss_2023_table_3": lambda row, column: {
        "task_or_dataset": row,
        "note": NOTES.get(column, column),
    },
    "confounding_table_1": match_form,
    "confounding_table_2": lambda row, column: {
        "note": column
        if column == "not fine-tuned"
        else f"fine-tuned with {column}"
    },
    "confounding_table_3": match_form,
    "warping_table_1": match_method,
    "warping_table_3": match_method,
    "warping_table_b": lambda row, column: {"note": row},
}
"""Functions of a row and a column, by file; others: `match_task`."""
