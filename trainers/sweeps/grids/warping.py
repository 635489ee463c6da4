"""Improving Length Generalization via Position Index Warping.

The size `paper` is the setting of section 5 and appendix B, with one seed: the
paper names none. Its runs on WikiText-103 need GPT-2's `vocab.json` and
`merges.txt` in `data/gpt2`. Table 2 trains nothing:
`python -m benchmarks.attention_sensitivity` computes it. The size `small` of
the other tables on text reads the source code of Python, byte by byte.
"""

import functools

from trainers.answers.options import AnswersConfig
from trainers.sweeps.grids.grid import Grid, cross, name_encodings
from trainers.sweeps.grids.matching import match_encoding

TITLE = "Position index warping"
SEEDS = (0,)

TEXT = {
    "paper": {"preset": "paper", "vocabulary": "data/gpt2"},
    "small": {
        "dataset": "python_source",
        "num_layers": 2,
        "steps": 1500,
        "train_length": "128",
        "test_lengths": "256,512,768,1024",
    },
}
LENGTHS = {
    "paper": (512, 1024, 2048, 3072, 4096),
    "small": (128, 256, 512, 768, 1024),
}
INTERPOLATED = {"encoding": "RoPE", "sampler": "InterpolatedPositions"}
RANGES = {"paper": (8072, 4096, 1024), "small": (2048, 1024, 256)}
"""Ranges of the randomized positions; the paper prints 8072, not 8192."""

ITEMS = {"copy": 20, "reverse": 20, "sort": 8, "summation": 8}
"""Longest trained length of each task of Table A."""

ABSENT = {("summation", 3), ("summation", 5)}
"""Tasks and ranges, in trained lengths, that Table A prints as a dot."""


NOTES = {
    "sqrt": "function sqrt",
    "beta": "function beta",
    **{f"{factor}M": f"({factor}M)" for factor in (10, 5, 3)},
}
"""Parts of notes, by what tables call them."""


def make_table_1(size):
    """Position index warping, Table 1: perplexity of earlier methods."""
    return _make_text_grid(
        "warping_table_1",
        "Table 1: loss of earlier methods on longer text",
        size,
        {
            "RoPE": {"encoding": "RoPE"},
            "InterpolatedPositions": INTERPOLATED,
            **_randomize(size, RANGES[size][:1]),
        },
        # Table 3 adds the fourth.
        lengths=(*LENGTHS[size][:3], LENGTHS[size][4]),
    )


def make_table_3(size):
    """Position index warping, Table 3: perplexity on longer text."""
    return _make_text_grid(
        "warping_table_3",
        "Table 3: loss on longer text",
        size,
        {
            "RoPE": {"encoding": "RoPE"},
            "InterpolatedPositions": INTERPOLATED,
            **_randomize(size, RANGES[size]),
            "ALiBi": {"encoding": "ALiBi"},
            "WarpedRoPE": _warp(6),
        },
    )


def make_table_b(size):
    """Position index warping, Table B: perplexity and the warping factor."""
    return _make_text_grid(
        "warping_table_b",
        "Table B: loss and the factor of head warping",
        size,
        {f"alpha = 1/{divisor}": _warp(divisor) for divisor in (2, 4, 6, 8)},
        match=lambda row, column: {"note": row},
    )


def make_table_a(size):
    """Position index warping, Table A: exact match on four tasks.

    The paper gives the ranges of randomized positions as multiples of the
    longest trained length, in items; here they are multiples of its tokens, of
    which prompts have more. Three times as many positions are too few for the
    longest tests: such runs are tested as far as the positions reach, so that
    their mean is not that of the others.
    """
    runs: list = []
    for task, items in ITEMS.items():
        rows = {task: _find_task_flags(task, items, size)}
        columns = dict(_list_methods(task, items))
        runs += cross("sequence_to_answer", {}, rows, columns, SEEDS)
    return Grid(
        name="warping_table_a",
        title=f"{TITLE}, Table A: exact match, mean over all lengths",
        size=size,
        runs=tuple(runs),
        score="generated_mean",
        unit="%",
        statistic="mean",
        published=("warping_table_a",),
        match=lambda row, column: {
            "task_or_dataset": row,
            **_match_method(column),
        },
    )


def make_figure_3(size):
    """Position index warping, Figure 3: copies by a model of two blocks."""
    common = {
        "paper": {"preset": "paper"},
        "small": {"batch_size": 64, "steps": 3000},
    }
    return Grid(
        name="warping_figure_3",
        title=f"{TITLE}, Figure 3: copies by a model of two blocks",
        size=size,
        runs=cross(
            "sequence_to_answer",
            {**common[size], "task": "copy", "num_layers": 2},
            {"copy": {"train_length": "1-10", "test_lengths": "11-20"}},
            name_encodings("ALiBi", "RoPE"),
            SEEDS,
        ),
        score="generated_exact_match_by_length",
        unit="%",
        statistic="mean",
        lengths=tuple(range(10, 21, 2)),
    )


def _match_method(name, _=""):
    """Matches `RandomizedRoPE, 10M` by its encoding and the note on 10M."""
    _, _, detail = name.partition(", ")
    note = f"maximum position {detail}" if detail.isdecimal() else detail
    return {**match_encoding(name), "note": NOTES.get(note, note)}


def _make_text_grid(
    name, title, size, rows, *, lengths=None, match=_match_method
):
    trainer, score = {
        "paper": ("wikitext103", "perplexity_by_length"),
        "small": ("enwik8", "nats_per_byte_by_length"),
    }[size]
    return Grid(
        name=name,
        title=f"{TITLE}, {title}",
        size=size,
        runs=cross(trainer, TEXT[size], rows, {"": {}}, SEEDS),
        score=score,
        unit="" if size == "paper" else "nats per byte",
        statistic="min",
        higher_is_better=False,
        # Losses on other data are not comparable.
        published=(name,) if size == "paper" else (),
        match=match,
        lengths=lengths or LENGTHS[size],
    )


def _randomize(size, reaches):
    """Returns rows of randomized positions; tables test what they reach."""
    rows = {}
    for reach in reaches:
        tested = [n for n in LENGTHS[size][1:] if n <= reach]
        rows[f"RandomizedRoPE, {reach}"] = {
            "encoding": "RandomizedRoPE",
            "max_position": reach,
            "test_lengths": ",".join(map(str, tested)),
        }
    return rows


def _warp(divisor):
    scale = 1 / divisor
    encoding = f"WarpedRoPE(skew='beta', head_scales=({scale!r},))"
    return {"encoding": encoding}


def _list_methods(task, items):
    """Yields the columns of a row of Table A, and the flags of their runs."""
    yield "RoPE", {"encoding": "RoPE"}
    yield "InterpolatedPositions", INTERPOLATED
    yield "ALiBi", {"encoding": "ALiBi"}
    for factor in (10, 5, 3):
        if (task, factor) not in ABSENT:
            reach = factor * _count_tokens(task, items)
            flags = {"encoding": "RandomizedRoPE", "max_position": reach}
            longest = max(
                length
                for length in range(items, 5 * items + 1)
                if _count_tokens(task, length) <= reach
            )
            if longest < 5 * items:
                flags["test_lengths"] = f"{items + 1}-{longest}"
            yield f"RandomizedRoPE, {factor}M", flags
    yield "WarpedRoPE, sqrt", {"encoding": "WarpedRoPE"}
    if task != "summation":
        yield "WarpedRoPE, beta", {"encoding": "WarpedRoPE(skew='beta')"}


def _find_task_flags(task, items, size):
    flags = {
        "task": task,
        "train_length": f"2-{items}",
        "test_lengths": f"{items + 1}-{5 * items}",
    }
    if size == "paper":
        # 10,000 examples over all lengths.
        number = -(-10_000 // (5 * items - 1))
        return {
            "preset": "paper",
            **flags,
            "evaluation_examples": number,
            "generated_examples": number,
        }
    stride = items // 2
    return {
        **flags,
        "test_lengths": f"{items + stride}-{5 * items}:{stride}",
        "num_layers": 2,
        "batch_size": 32,
        "steps": 2000,
        "generated_examples": 20,
    }


@functools.cache
def _count_tokens(task, length):
    return AnswersConfig(task=task).total_length(length)


GRIDS = {
    "warping_table_1": make_table_1,
    "warping_table_3": make_table_3,
    "warping_table_a": make_table_a,
    "warping_table_b": make_table_b,
    "warping_figure_3": make_figure_3,
}
