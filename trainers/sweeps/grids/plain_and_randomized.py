"""Six encodings, plain and randomized, on four tasks.

These are the rows of Table 1 of Ruoss et al., 2023, that show most. `LogKERPLE`
takes the place of `NoPE`, which has no randomized form; its published numbers
are those of Table B.1 of the paper on confounding effects. The size `small` has
two seeds, 96 runs, which take less than two hours on two cores.
"""

import itertools

from trainers.sweeps.grids.chomsky import SCORE, make_runs
from trainers.sweeps.grids.grid import Grid, name_encodings

TASKS = (
    *("even_pairs", "reverse_string"),
    *("missing_duplicate_string", "bucket_sort"),
)
ENCODINGS = (
    *("SinusoidalEncoding", "LearnedEncoding", "RelativeEncoding", "RoPE"),
    *("ALiBi", "LogKERPLE"),
)
SEEDS = {"paper": 10, "small": 2}


def make_grid(size):
    """Six encodings of Ruoss et al., 2023, plain and randomized, on 4 tasks."""
    columns = name_encodings(
        *itertools.chain.from_iterable(
            (name, f"Randomized{name}") for name in ENCODINGS
        )
    )
    return Grid(
        name="plain_and_randomized",
        title="Encodings and their randomized forms on four tasks",
        size=size,
        runs=make_runs(columns, size, seeds=SEEDS[size], tasks=TASKS),
        published=(
            *("ruoss_2023_table_1", "ruoss_2023_table_4"),
            "confounding_table_b1",
        ),
        **SCORE,
    )


GRIDS = {"plain_and_randomized": make_grid}
