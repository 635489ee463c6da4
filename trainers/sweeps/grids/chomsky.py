"""Runs on the fifteen algorithmic tasks, which several papers have."""

from trainers.sweeps.grids.grid import cross

LEARNING_RATES = (1e-4, 3e-4, 5e-4)

TASKS = (
    *("even_pairs", "modular_arithmetic", "parity_check", "cycle_navigation"),
    *("stack_manipulation", "reverse_string", "modular_arithmetic_brackets"),
    *("solve_equation", "duplicate_string", "missing_duplicate_string"),
    *("odds_first", "binary_addition", "binary_multiplication"),
    *("compute_sqrt", "bucket_sort"),
)

SMALL = {
    "num_layers": 3,
    "model_dim": 64,
    "batch_size": 32,
    "steps": 3000,
    "learning_rate": 1e-3,
    "train_length": "1-20",
    "test_lengths": "25-100:5",
}
"""Flags of the small size: a run trains for about 100 s on one core."""

SCORE = {
    "score": "score",
    "unit": "%",
    "statistic": "max",
    "higher_is_better": True,
    "chosen": "learning_rate",
}
"""Fields of a `Grid` that shows the mean accuracy at unseen lengths.

Its means are over seeds, at the best learning rate, as those of Ruoss et al.,
2023, appendix B.2.
"""


def make_runs(columns, size, *, seeds, tasks=TASKS, small=SMALL):
    """Returns the runs of a table whose rows are tasks.

    Args:
        columns: Dict from the names of columns to the flags of their runs.
        size: `"paper"` or `"small"`.
        seeds: int. Number of seeds.
        tasks: Names of the tasks.
        small: Dict of flags of the size `"small"`.

    Returns:
        Tuple of `Run`: those of the first seed first.
    """
    if size == "paper":
        common, rates = {"preset": "paper"}, LEARNING_RATES
    else:
        common, rates = small, (small["learning_rate"],)
    rows = {task: {"task": task} for task in tasks}
    return tuple(
        run
        for seed in range(seeds)
        for rate in rates
        for run in cross(
            "algorithmic",
            {**common, "learning_rate": rate},
            rows,
            columns,
            [seed],
        )
    )
