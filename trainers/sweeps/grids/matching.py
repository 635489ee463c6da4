"""Finds the published number of a cell of a table.

A function of a row and a column returns what columns of `benchmarks/published/`
say of the cell's number, and of the column `note` a part. These suit several
papers; others stand in the file of their paper.
"""

from trainers.records.styles import RANDOMIZED


def match_encoding(name):
    """Matches an encoding, such as `RandomizedRoPE`.

    Flags behind the name, such as `RoPE, steps=100`, are only ours.
    """
    encoding = name.partition(", ")[0]
    return {
        "model_or_encoding": encoding.removeprefix(RANDOMIZED),
        "randomized": "yes" if encoding.startswith(RANDOMIZED) else "no",
    }


def match_task(row, column):
    """Matches a task by an encoding.

    >>> match_task("even_pairs", "RandomizedRoPE")
    ... # doctest: +NORMALIZE_WHITESPACE
    {'task_or_dataset': 'even_pairs', 'model_or_encoding': 'RoPE',
     'randomized': 'yes'}
    """
    return {"task_or_dataset": row, **match_encoding(column)}
