"""Randomized Positional Encodings Boost Length Generalization of Transformers.

The size `paper` is the setting of section 4 and appendix A: fifteen tasks,
lengths 1 to 40, 2 million steps, three learning rates and ten seeds. The paper
does not say how many seeds Figure 3 has; here they are as many as those of the
tables. The size `small` has one seed and learning rate. Tables 1, 2 and 4 have
the same runs: the tables 1 and 4 show the maximum and the mean of their
accuracies, and table 2 the hours of training, which depend on the hardware.

Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
"""

from trainers.sweeps.grids.chomsky import SCORE, SMALL, make_runs
from trainers.sweeps.grids.grid import TIME, Grid, name_encodings

SEEDS = {"paper": 10, "small": 1}

COLUMNS = name_encodings(
    *("NoPE", "SinusoidalEncoding", "RelativeEncoding", "ALiBi", "RoPE"),
    *("LearnedEncoding", "RandomizedSinusoidalEncoding"),
    *("RandomizedRelativeEncoding", "RandomizedALiBi", "RandomizedRoPE"),
    "RandomizedLearnedEncoding",
)
GEOMETRIC = {
    "GeometricAttention": {
        "encoding": "NoPE",
        "attention": "GeometricAttention",
    }
}
UNSORTED = {
    "unsorted": {"encoding": "RandomizedSinusoidalEncoding(ordered=False)"},
    "sorted": {"encoding": "RandomizedSinusoidalEncoding"},
}
TITLE = "Ruoss et al., 2023"
PUBLISHED = ("ruoss_2023_table_1", "ruoss_2023_table_4")
"""Files of the maxima and of the means of the same runs."""


def make_table_1(size):
    """Ruoss et al., 2023, Table 1: best accuracy of encodings on 15 tasks."""
    return Grid(
        name="ruoss_table_1",
        title=f"{TITLE}, Table 1: best accuracy of each encoding",
        size=size,
        runs=make_runs(COLUMNS, size, seeds=SEEDS[size]),
        published=PUBLISHED,
        **SCORE,
    )


def make_table_2(size):
    """Ruoss et al., 2023, Table 2: hours of training of the runs of Table 1."""
    return Grid(
        name="ruoss_table_2",
        title=f"{TITLE}, Table 2: hours of training",
        size=size,
        runs=make_runs(COLUMNS, size, seeds=SEEDS[size]),
        score=TIME,
        unit="hours",
        statistic="mean",
        higher_is_better=False,
        published=("ruoss_2023_table_2",),
    )


def make_table_3(size):
    """Ruoss et al., 2023, Table 3: accuracy without and with sorting."""
    return Grid(
        name="ruoss_table_3",
        title=f"{TITLE}, Table 3: accuracy without and with sorted positions",
        size=size,
        runs=make_runs(UNSORTED, size, seeds=SEEDS[size]),
        published=("ruoss_2023_table_3",),
        match=_match_sorting,
        **SCORE,
    )


def make_table_4(size):
    """Ruoss et al., 2023, Table 4: mean accuracy of the runs of Table 1."""
    return Grid(
        name="ruoss_table_4",
        title=f"{TITLE}, Table 4: mean accuracy at the best learning rate",
        size=size,
        runs=make_runs(COLUMNS, size, seeds=SEEDS[size]),
        published=PUBLISHED,
        **{**SCORE, "statistic": "mean"},
    )


def make_table_5(size):
    """Ruoss et al., 2023, Table 5: accuracy of geometric attention."""
    return Grid(
        name="ruoss_table_5",
        title=f"{TITLE}, Table 5: accuracy of geometric attention",
        size=size,
        runs=make_runs(GEOMETRIC, size, seeds=SEEDS[size]),
        published=("ruoss_2023_table_5",),
        only_published={
            "best of Table 1": "BestOfTable1",
            "best of Table 4": "BestOfTable4",
        },
        **SCORE,
    )


def make_figure_2(size):
    """Ruoss et al., 2023, Figure 2: training on short or on long sequences."""
    longest = {"paper": "1-500", "small": "1-100"}[size]
    columns = {
        "randomized, short": {"encoding": "RandomizedRelativeEncoding"},
        "plain, long": {
            "encoding": "RelativeEncoding",
            "train_length": longest,
        },
    }
    return Grid(
        name="ruoss_figure_2",
        title=f"{TITLE}, Figure 2: training on short or on long sequences",
        size=size,
        runs=make_runs(
            columns,
            size,
            seeds=SEEDS[size],
            tasks=("missing_duplicate_string",),
        ),
        **SCORE,
    )


def make_figure_3(size):
    """Ruoss et al., 2023, Figure 3: accuracy and the range of positions."""
    ranges = {"paper": (1024, 2048, 4096, 8192), "small": (128, 256, 512)}
    columns = {
        f"{reach}": {
            "encoding": "RandomizedRelativeEncoding",
            "max_position": reach,
        }
        for reach in ranges[size]
    }
    return Grid(
        name="ruoss_figure_3",
        title=f"{TITLE}, Figure 3: accuracy and the range of positions",
        size=size,
        runs=make_runs(
            columns,
            size,
            seeds=SEEDS[size],
            tasks=("reverse_string", "missing_duplicate_string"),
            small={**SMALL, "test_lengths": "25-60:5"},
        ),
        **SCORE,
    )


def make_figure_4(size):
    """Ruoss et al., 2023, Figure 4: accuracy at each length."""
    lengths = {"paper": range(50, 501, 50), "small": range(25, 101, 25)}
    return Grid(
        name="ruoss_figure_4",
        title=f"{TITLE}, Figure 4: accuracy at each length",
        size=size,
        runs=make_runs({**COLUMNS, **GEOMETRIC}, size, seeds=SEEDS[size]),
        lengths=tuple(lengths[size]),
        **{**SCORE, "score": "accuracy_by_length"},
    )


def _match_sorting(row, column):
    notes = {"sorted": "with sorting", "unsorted": "without sorting"}
    return {"task_or_dataset": row, "note": notes.get(column, column)}


GRIDS = {
    "ruoss_table_1": make_table_1,
    "ruoss_table_2": make_table_2,
    "ruoss_table_3": make_table_3,
    "ruoss_table_4": make_table_4,
    "ruoss_table_5": make_table_5,
    "ruoss_figure_2": make_figure_2,
    "ruoss_figure_3": make_figure_3,
    "ruoss_figure_4": make_figure_4,
}
