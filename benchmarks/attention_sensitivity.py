"""Which skew of warped positions prepares best for interpolated ones?

The total difference between the attention sensitivities at the end of trained
sequences and of longer, interpolated ones, idealised: no training, no data.
It is the question of the position index warping paper, Table 2, under the
reading that the report states.

    python -m benchmarks.attention_sensitivity
"""

import functools
import pathlib

import numpy as np
from absl import app, flags

from benchmarks.measure import (
    command_line,
    write_report,
)
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
    "output", "benchmarks/results/attention_sensitivity.json", "The report."
)
flags.DEFINE_string("images", "docs/images", "Folder of the pictures.")

LENGTHS = {20: 10, 500: 200}
"""Trained lengths, and how many of their last tokens are compared."""

FACTORS = (2, 4)
"""Lengths of the test, as multiples of the trained one."""

SKEWS = {"without": None, "sqrt": "sqrt", "beta": "beta"}
"""Columns of the table, and the skew of `WarpedPositions`."""

READINGS = {
    "exponentiated, infinite width": {},
    "not exponentiated, infinite width": {"exponentiated": False},
    "exponentiated, one token more": {"more_tokens": 1},
    **{
        f"exponentiated, width {width}": {"width": width}
        for width in (768, 128, 64)
    },
}
"""How Table 2 can be read, the first of which is ours."""


def train_positions(length, skew):
    """Positions of a trained sequence whose tail is warped, or not."""
    sampler = OrdinalPositions()
    if skew:
        sampler = WarpedPositions(
            train_length=length, head_fraction=0, tail_fraction=1, skew=skew
        )
    return np.ravel(sampler(np.zeros((1, length)), training=True))


def interpolated_positions(length, factor):
    """Positions of a longer sequence, interpolated into the trained range."""
    sampler = InterpolatedPositions(train_length=length)
    return np.ravel(sampler(np.zeros((1, factor * length)), training=False))


def differences(length, *, width=None, exponentiated=True, more_tokens=0):
    """Total differences, `{factor: {column: number}}`, under one reading."""
    return {
        factor: {
            name: total_difference(
                train_positions(length, skew),
                interpolated_positions(length, factor),
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


def table_rows():
    """A dict for each reading, trained length and factor."""
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
        for factor, columns in differences(length, **arguments).items()
    ]


def markdown(rows):
    """The report for people."""
    reading = next(iter(READINGS))
    lines = [
        "# Total difference of attention sensitivities",
        "",
        "Trained positions with no warping, or with their tails warped by",
        "`WarpedPositions(skew=...)`, against positions of sequences 2 and 4",
        "times as long, interpolated into the trained range. Smaller is",
        "better; the best of each line is bold.",
        "",
        *_table(rows, [reading]),
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
        *_table(rows, list(READINGS)[1:]),
    ]
    return "\n".join(lines) + "\n"


def _table(rows, readings):
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
    """Draws what the two encodings score at a distance (Figure 1)."""
    picture, (left, right) = _picture(2)
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
    """Draws the sensitivities of trained and longer sequences (Figure 2)."""
    picture, (left, right) = _picture(2)
    length, alibi = 20, functools.partial(alibi_raw_attention, slope=1 / 8)
    for factor, size in ((4, 7), (2, 5), (1, 2)):
        label = f"{factor * length} tokens" + (", trained" * (factor == 1))
        for axes, positions, attention in (
            (left, interpolated_positions(length, factor), rope_raw_attention),
            (right, np.arange(factor * length), alibi),
        ):
            changes = attention_sensitivity(positions, raw_attention=attention)
            axes.plot(changes, marker="o", ms=size, label=label)
    left.set(title="RoPE, interpolated beyond 20 tokens")
    right.set(title="ALiBi, slope 1/8, positions 0, 1, 2, ...")
    left.set_ylabel("attention sensitivity")
    _finish(path, picture, xlabel="token")


def plot_tails(path, length):
    """Draws skewed positions, and the end they prepare for (Figures 4, A)."""
    picture, (left, right) = _picture(2)
    # The end of the many that are compared, or the curves are a tangle.
    last = min(LENGTHS[length], 40)
    from_end = np.arange(1 - last, 0)
    for name, skew in SKEWS.items():
        positions = train_positions(length, skew)
        changes = attention_sensitivity(positions)
        label = "not warped" if skew is None else f"warped by {name}"
        left.plot(positions, label=label)
        right.plot(from_end, changes[1 - last :], label=label)
    for factor, style in zip(FACTORS, _DASHES, strict=True):
        changes = attention_sensitivity(interpolated_positions(length, factor))
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
    """Draws the start that head warping prepares for (Figure B)."""
    picture, (axes,) = _picture(1)
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
        changes = attention_sensitivity(interpolated_positions(length, factor))
        label = f"interpolated, {factor * length} tokens"
        axes.plot(changes[:first], style, color="0.2", label=label)
    axes.set(title="Heads of 20 trained tokens", ylabel="attention sensitivity")
    _finish(path, picture, xlabel="token")


# Distinguishable without red and green.
_COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")
_DASHES = ("--", ":")


def _picture(columns):
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
    rows = table_rows()
    text = markdown(rows)
    print(text)
    path = pathlib.Path(FLAGS.output)
    command = command_line("benchmarks.attention_sensitivity")
    write_report(path, command, {"rows": rows})
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
