"""Writes the page on scaling from the programs compiled for TPUs.

python -m docs.build_scaling
"""

import pathlib

from trainers.options.fields import resolve
from trainers.records.markdown import table
from trainers.tpu.compiler import (
    CHIPS,
    HOP_SECONDS,
    Topology,
    estimate_all_reduce_seconds,
)
from trainers.tpu.table import FAMILIES, POD, Results
from trainers.tpu_compile import PRESETS, TpuCompileConfig, programs

DOCS = pathlib.Path(__file__).parent
PAGE = DOCS / "scaling.md"
RESULTS = DOCS.parent / "benchmarks" / "results" / "tpu_compile.jsonl"

COMPILED = "v5e:2x2"
"""The slice whose programs tell what a chip has to do."""

SLICES = tuple(
    Topology(f"v5e:{shape}")
    for shape in ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
)

_NUMBERS = [f"{topology.chips}" for topology in SLICES]

TRAINERS = (
    {"trainer": "algorithmic", "preset": "paper"},
    {"trainer": "enwik8", "encoding": "RoPE"},
    {"trainer": "imagenet", "encoding": "RoPE"},
    {"trainer": "t5_decoder", "encoding": "T5Bias"},
    {"trainer": "gpt2", "encoding": "LearnedEncoding", "max_position": 1024},
)
"""Flags of the training steps on the page, the longest one of each."""

UPDATE_BYTES = 28
"""Bytes that the update moves of a parameter, whatever the batch is.

It reads the parameter, its gradient and Adam's two moments, and writes all but
the gradient, as float32.
"""

PAGE_TEXT = """\
# Scaling on paper

<!-- Written by `python -m docs.build_scaling`. -->

How much faster is training on more chips? No TPU was at hand, so this is
computed from the programs that Google's compiler makes of the trainers' steps
([table](../benchmarks/results/tpu_compile.md)). It is what the chips, their
memory and their links allow, not what a run will reach.

## The formula

Every chip has a copy of the model and its share of the batch; the gradients
are summed over all of them. With `n` chips a step takes

    step(n) = max(flop / peak, bytes / bandwidth) + sum(n)
    sum(n)  = 2 * (gradients * (n - 1) / n / links + hops * {hop:.0f} us)

- `flop`, `bytes` and `gradients` are those of a chip's program, as the
  compiler counts them. It counts bytes in fast memory on the chip like those
  in its main memory, so `bytes / bandwidth` is rather too long, and efficiency
  rather too good.
- `links` is the bandwidth of the links in use, in one direction: two along an
  axis that is a ring, one along an axis that is not. On v5e, axes of
  {ring} chips are rings. `hops` are those to the farthest chip.
- Nothing is computed during the sum: the compiler puts the gradients into a
  few messages at the end, and clipping by the global norm needs them all.

The [scaling book](https://jax-ml.github.io/scaling-book/sharding) derives the
sum and measures a hop at about a microsecond. Chips, as Google gives them for
[v5e](https://cloud.google.com/tpu/docs/v5e) and
[v4](https://cloud.google.com/tpu/docs/v4):

{chips}

## The programs

Training in mixed_bfloat16, compiled for {compiled}; of one chip:

{programs}

That a chip has the same to do on {pod} as on {compiled} is not assumed: small
encoders compiled for both, with {share} examples a chip, say so.

{pods}

## More chips, larger batch

Each chip keeps its number of examples, and the batch grows with the chips.
Efficiency is `step(1) / step(n)`. From {ring} chips along an axis on, its links
are a ring, and the sum takes half the time.

{weak}

## More chips, same batch

The published batch is shared by more chips. `flop` falls with the share;
`bytes` too, but for the {update} bytes of each parameter that the update
moves. Efficiency is `step(1) / (n * step(n))`; there is none where chips would
be without an example.

{strong}

The models are small: on many chips nothing is left to compute while the sum
stays, so a larger batch is the use for a larger slice, and several runs side by
side are a better one.

## What is left out

The time to start a program and each of its operations, which is most of the
time of steps below a millisecond; the host, which draws the batches; padding
of small matrices to the size of the chip's units; and the sums' own
arithmetic.
"""


def page():
    """The text of the page.

    Raises:
        KeyError: If a program has not been compiled yet.
    """
    results = Results(RESULTS)
    found = [_find_row(results, flags) for flags in TRAINERS]
    pairs = [
        [
            _find_row(
                results, {"trainer": "encoder", "encoding": encoding, **slice_}
            )
            for slice_ in ({}, POD)
        ]
        for encoding in FAMILIES
    ]
    return PAGE_TEXT.format(
        hop=1e6 * HOP_SECONDS,
        ring=CHIPS["v5e"].ring,
        update=UPDATE_BYTES,
        compiled=COMPILED,
        pod=POD["topology"],
        share=pairs[0][0]["examples_per_chip"],
        chips=_format_chips(),
        programs=_format_programs(found),
        pods=_format_pods(pairs),
        weak=_format_weak(found),
        strong=_format_strong(found),
    )


def _format_chips():
    rows = [
        (
            name,
            f"{chip.flops / 1e12:.0f} Tflop/s",
            f"{chip.memory / 1e9:.0f} GB",
            f"{chip.bandwidth / 1e9:,.0f} GB/s",
            f"{2 * chip.axes} x {chip.links / 2 / chip.axes / 1e9:.0f} GB/s",
        )
        for name, chip in CHIPS.items()
    ]
    return table(("chip", "peak", "memory", "bandwidth", "links"), rows)


def _format_programs(found):
    chip = Topology(COMPILED).chip
    head = (
        "trainer",
        "encoding",
        "tokens",
        "examples",
        "Gflop",
        "GB",
        "MB of gradients",
        "in messages",
        "ms for products",
        "ms for memory",
    )
    rows = [
        (
            f"`{row['trainer']}`",
            f"`{row['encoding']}`",
            f"{row['tokens']:,}",
            f"{row['examples_per_chip']}",
            f"{row['flops'] / 1e9:,.1f}",
            f"{row['bytes'] / 1e9:,.2f}",
            f"{row['all_reduce_bytes'] / 1e6:,.1f}",
            f"{row['all_reduces']}",
            f"{1e3 * row['flops'] / chip.flops:.2f}",
            f"{1e3 * row['bytes'] / chip.bandwidth:.2f}",
        )
        for row in found
    ]
    return table(head, rows)


def _format_pods(pairs):
    columns = {
        "Mflop": ("flops", 1e6),
        "MB": ("bytes", 1e6),
        "kB of gradients": ("all_reduce_bytes", 1e3),
    }
    head = [
        f"{column} on {where}"
        for column in columns
        for where in (COMPILED, POD["topology"])
    ]
    rows = [
        (
            f"`{pair[0]['encoding']}`",
            *(
                f"{row[name] / unit:,.1f}"
                for name, unit in columns.values()
                for row in pair
            ),
        )
        for pair in pairs
    ]
    return table(("encoding", *head), rows)


def _format_weak(found):
    rows = [
        (
            f"`{row['trainer']}`",
            *(f"{weak(row, topology):.0%}" for topology in SLICES),
        )
        for row in found
    ]
    return table(("efficiency on chips", *_NUMBERS), rows)


def _format_strong(found):
    rows = [
        (
            f"`{row['trainer']}`",
            f"{row['batch_size']}",
            *(
                f"{strong(row, topology):.0%}"
                if topology.chips <= row["batch_size"]
                else ""
                for topology in SLICES
            ),
        )
        for row in found
    ]
    return table(("efficiency on chips", "batch", *_NUMBERS), rows)


def _find_row(results, flags):
    config = resolve(
        TpuCompileConfig,
        PRESETS,
        {"topology": COMPILED, "mode": "train", **flags},
    )
    (program,) = programs(config)
    return results[program.key]


def weak(row, topology):
    """Efficiency where each chip keeps its examples.

    Args:
        row: That of a training step, compiled.
        topology: The `Topology` it is to run on.
    """
    own = _estimate_own_seconds(row, topology, 1)
    return own / (
        own + estimate_all_reduce_seconds(row["all_reduce_bytes"], topology)
    )


def strong(row, topology):
    """Efficiency where the chips share the batch."""
    share = Topology(row["topology"]).chips / topology.chips
    seconds = _estimate_own_seconds(row, topology, share)
    seconds += estimate_all_reduce_seconds(row["all_reduce_bytes"], topology)
    alone = _estimate_own_seconds(row, topology, share * topology.chips)
    return alone / (topology.chips * seconds)


def _estimate_own_seconds(row, topology, share):
    """Seconds that a chip computes, with that share of the row's examples."""
    fixed = min(UPDATE_BYTES * row["trained_parameters"], row["bytes"])
    moved = fixed + (row["bytes"] - fixed) * share
    chip = topology.chip
    return max(row["flops"] * share / chip.flops, moved / chip.bandwidth)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"page: {PAGE}")
