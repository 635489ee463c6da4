"""Which skew of warped positions is the best preparation for interpolation?

Computes the total difference of attention sensitivities at the end of trained
sequences and of longer, interpolated sequences, without training or data, like
Table 2 of the position index warping paper. The report states how it reads the
paper.

    python -m benchmarks.attention_sensitivity
"""

import functools
import pathlib

import numpy as np
from absl import app, flags

from benchmarks.measure import write_report
from keras_lengen.analysis import (
    alibi_raw_attention,
    attention_sensitivity,
    rope_raw_attention,
    total_difference,
)
from keras_lengen.layers import (
    InterpolatedPositions,
    OrdinalPositions,
    WarpedPositions,
)

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "output",
    "benchmarks/results/attention_sensitivity.json",
    "File for the report.",
)
flags.DEFINE_string("images", "docs/images", "Directory for the pictures.")

LENGTHS = {20: 10, 500: 200}
"""Trained lengths, and the number of last tokens to compare."""

FACTORS = (2, 4)
"""Test lengths as multiples of the trained length."""

SKEWS = {"without": None, "sqrt": "sqrt", "beta": "beta"}
"""Columns of the table, and the `skew` of `WarpedPositions`."""

READINGS = {
    "exponentiated, infinite width": {},
    "not exponentiated, infinite width": {"exponentiated": False},
    "exponentiated, one token more": {"more_tokens": 1},
    **{
        f"exponentiated, width {width}": {"width": width}
        for width in (768, 128, 64)
    },
}
"""Possible readings of Table 2; the first one is ours."""


def sample_train_positions(length, skew):
    """Samples positions of a trained sequence, its tail warped or not."""
    sampler = OrdinalPositions()
    if skew:
        sampler = WarpedPositions(
            train_length=length, head_fraction=0, tail_fraction=1, skew=skew
        )
    return np.ravel(sampler(np.zeros((1, length)), training=True))


def interpolate_positions(length, factor):
    """Interpolates positions of a longer sequence into the trained range."""
    sampler = InterpolatedPositions(train_length=length)
    return np.ravel(sampler(np.zeros((1, factor * length)), training=False))


def compute_differences(
    length, *, width=None, exponentiated=True, more_tokens=0
):
    """Computes total differences, `{factor: {column: number}}`."""
    return {
        factor: {
            name: total_difference(
                sample_train_positions(length, skew),
                interpolate_positions(length, factor),
                LENGTHS[length] + more_tokens,
                raw_attention=functools.partial(
                    rope_raw_attention, width=width
                ),
                exponentiated=exponentiated,
            )
            for name, skew in SKEWS.items()
        }
        for factor in FACTORS
    }


def make_rows():
    """Makes a row for each reading, trained length and factor."""
    return [
        {
            "reading": reading,
            "train_length": length,
            "factor": factor,
            "total_difference": columns,
            "best": min(columns, key=columns.get),
        }
        for reading, arguments in READINGS.items()
        for length in LENGTHS
        for factor, columns in compute_differences(length, **arguments).items()
    ]


def format_report(rows):
    """Formats the report in Markdown."""
    reading = next(iter(READINGS))
    lines = [
        "# Total difference of attention sensitivities",
        "",
        "Trained positions with no warping, or with their tails warped by",
        "`WarpedPositions(skew=...)`, against positions of sequences 2 and 4",
        "times as long, interpolated into the trained range. Smaller is",
        "better; the best of each line is bold.",
        "",
        *_format_table(rows, [reading]),
        "",
        "The reading: a raw score is the mean of `cos(x * w)` over the rotary",
        "frequencies `w` at the distance `x` from the first token, here the",
        "integral for infinitely wide heads. The sensitivity of a token is by",
        "how much the exponential of the score changes up to the next token.",
        "Token `j` of `n` stands at `n * f(j / n)`, `j` from 0, when trained,",
        "at `j / factor` in the test. Summed is the absolute difference of the",
        "sensitivities between the last 10 tokens at length 20, the last 200",
        "at length 500.",
        "",
        "The position index warping paper leaves the width, the exponential",
        "and the indices of its Table 2 open. What other readings give:",
        "",
        *_format_table(rows, list(READINGS)[1:]),
    ]
    return "\n".join(lines) + "\n"


def _format_table(rows, readings):
    names = list(SKEWS)
    lines = [
        "| reading | trained length | test length | "
        + " | ".join(names)
        + " |",
        "| " + " | ".join(["---"] * (3 + len(names))) + " |",
    ]
    for row in rows:
        if row["reading"] not in readings:
            continue
        cells = [
            f"**{number:.3f}**" if name == row["best"] else f"{number:.3f}"
            for name, number in row["total_difference"].items()
        ]
        length, factor = row["train_length"], row["factor"]
        lines.append(
            f"| {row['reading']} | {length} | {factor * length} | "
            + " | ".join(cells)
            + " |"
        )
    return lines


def plot_raw_attention(path):
    """Plots the raw attention of two encodings by distance (Figure 1)."""
    picture, (left, right) = _make_picture(2)
    distances = np.linspace(0, 500, 1001)
    for width in (64, 768, None):
        left.plot(
            distances,
            np.exp(rope_raw_attention(distances, width=width)),
            label="infinite width" if width is None else f"width {width}",
        )
    for slope in (1 / 2, 1 / 8, 1 / 32, 1 / 256):
        right.plot(
            distances,
            np.exp(alibi_raw_attention(distances, slope=slope)),
            label=f"slope 1/{1 / slope:.0f}",
        )
    left.set(title="RoPE", ylabel="exponential of the raw attention")
    right.set(title="ALiBi")
    _finish(path, picture, xlabel="distance in tokens")


def plot_sensitivity(path):
    """Plots sensitivities of trained and longer sequences (Figure 2)."""
    picture, (left, right) = _make_picture(2)
    length, alibi = 20, functools.partial(alibi_raw_attention, slope=1 / 8)
    for factor, size in ((4, 7), (2, 5), (1, 2)):
        label = f"{factor * length} tokens" + (", trained" * (factor == 1))
        for axes, positions, attention in (
            (left, interpolate_positions(length, factor), rope_raw_attention),
            (right, np.arange(factor * length), alibi),
        ):
            changes = attention_sensitivity(positions, raw_attention=attention)
            axes.plot(changes, marker="o", ms=size, label=label)
    left.set(title="RoPE, interpolated beyond 20 tokens")
    right.set(title="ALiBi, slope 1/8, positions 0, 1, 2, ...")
    left.set_ylabel("attention sensitivity")
    _finish(path, picture, xlabel="token")


def plot_tails(path, length):
    """Plots skewed positions and sensitivities at the end (Figures 4, A)."""
    picture, (left, right) = _make_picture(2)
    # Only the end of the compared tokens, so that curves stay readable.
    last = min(LENGTHS[length], 40)
    from_end = np.arange(1 - last, 0)
    for name, skew in SKEWS.items():
        positions = sample_train_positions(length, skew)
        changes = attention_sensitivity(positions)
        label = "not warped" if skew is None else f"warped by {name}"
        left.plot(positions, label=label)
        right.plot(from_end, changes[1 - last :], label=label)
    for factor, style in zip(FACTORS, _DASHES, strict=True):
        changes = attention_sensitivity(interpolate_positions(length, factor))
        label = f"interpolated, {factor * length} tokens"
        right.plot(
            from_end, changes[1 - last :], style, color="0.2", label=label
        )
    left.set(
        title=f"{length} trained tokens", xlabel="token", ylabel="position"
    )
    right.set(
        title=f"The last {last} tokens",
        xlabel="token, counted from the end",
        ylabel="attention sensitivity",
    )
    _finish(path, picture)


def plot_heads(path):
    """Plots sensitivities at the start with head warping (Figure B)."""
    picture, (axes,) = _make_picture(1)
    length, first = 20, 10
    for scale in (1.0, 0.8, 0.6, 0.4):
        sampler = WarpedPositions(
            train_length=length,
            head_fraction=1,
            tail_fraction=0,
            head_scales=(scale,),
        )
        positions = np.ravel(sampler(np.zeros((1, length)), training=True))
        label = "not warped" if scale == 1 else f"warped by {scale}"
        axes.plot(attention_sensitivity(positions)[:first], label=label)
    for factor, style in zip(FACTORS, _DASHES, strict=True):
        changes = attention_sensitivity(interpolate_positions(length, factor))
        label = f"interpolated, {factor * length} tokens"
        axes.plot(changes[:first], style, color="0.2", label=label)
    axes.set(title="Heads of 20 trained tokens", ylabel="attention sensitivity")
    _finish(path, picture, xlabel="token")


# Distinguishable without red and green.
_COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")
_DASHES = ("--", ":")


def _make_picture(columns):
    from matplotlib import figure

    size = (2.5 + 4 * columns, 4.5)
    picture = figure.Figure(figsize=size, layout="constrained")
    columns = picture.subplots(1, columns, squeeze=False)[0]
    for axes in columns:
        axes.set_prop_cycle(color=_COLORS)
    return picture, columns


def _finish(path, picture, **settings):
    for axes in picture.axes:
        axes.set(**settings)
        axes.grid(alpha=0.3)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    picture.savefig(path, dpi=120)
    print(f"picture: {path}")


def main(argv):
    """Prints the table, writes the report and the pictures."""
    del argv
    rows = make_rows()
    text = format_report(rows)
    print(text)
    path = pathlib.Path(FLAGS.output)
    write_report(path, "benchmarks.attention_sensitivity", {"rows": rows})
    path.with_suffix(".md").write_text(text)
    images = pathlib.Path(FLAGS.images)
    images.mkdir(parents=True, exist_ok=True)
    plot_raw_attention(images / "raw_attention.png")
    plot_sensitivity(images / "attention_sensitivity.png")
    for length in LENGTHS:
        plot_tails(images / f"tail_warping_{length}.png", length)
    plot_heads(images / "head_warping.png")


if __name__ == "__main__":
    app.run(main)
