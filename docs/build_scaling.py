"""Writes the page on scaling from the results of compiling for TPUs.

python -m docs.build_scaling
"""

import pathlib

from keras_lengen.layers.encodings.distances import FEW_ENTRIES
from trainers.options.fields import resolve
from trainers.records.markdown import table
from trainers.tpu.compiler import (
    CHIPS,
    HOP_SECONDS,
    Topology,
    estimate_all_reduce_seconds,
)
from trainers.tpu.options import PRESETS, TpuCompileConfig
from trainers.tpu.requests import list_programs
from trainers.tpu.table import (
    BACKENDS,
    FAMILIES,
    POD,
    PUBLISHED,
    PUBLISHED_WITH_JAX,
    Results,
)

DOCS = pathlib.Path(__file__).parent
PAGE = DOCS / "guides" / "scaling.md"
RESULTS = DOCS.parent / "benchmarks" / "results" / "tpu_compile.jsonl"

COMPILED = "v5e:2x2"
"""The slice for which the programs on the page are compiled."""

SLICES = tuple(
    Topology(f"v5e:{shape}")
    for shape in ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
)

_NUMBERS = [f"{topology.chips}" for topology in SLICES]

TRAINERS = (
    *({"backend": "tensorflow", **flags} for flags in PUBLISHED),
    *(
        {"backend": "jax", "fused": "never", **flags}
        for flags in PUBLISHED_WITH_JAX
    ),
)
"""Flags of the trainers on the page; of each, the longest training step."""

UPDATE_BYTES = 28
"""Bytes that an update reads and writes for each parameter.

It reads the parameter, its gradient and Adam's two moments, and writes the
parameter and the moments; each is a float32 number. The bytes do not depend on
the batch size.
"""

LARGE = 15
"""Number of times the bytes of NoPE above which a program is named."""

PAGE_TEXT = """\
# Estimated scaling

<!-- Written by `python -m docs.build_scaling`. -->

How much faster is training on more chips? No TPU was available, so the numbers
on this page are computed from the programs that Google's compiler makes of the
training steps of TensorFlow and of JAX
([table](../../benchmarks/results/tpu_compile.md)). They are limits that follow
from the chips, their memory and their links; a run will not reach them.

## The formula

Each chip has a copy of the model and an equal share of the batch; gradients are
summed over all chips. With `n` chips, a training step takes the time

    step(n) = max(flop / peak, bytes / bandwidth) + sum(n)
    sum(n)  = 2 * (gradients * (n - 1) / n / links + hops * {hop:.0f} us)

- `flop`, `bytes` and `gradients` are the compiler's counts for the program of
  one chip. The compiler counts bytes in fast memory on the chip like bytes in
  main memory, so the estimate of `bytes / bandwidth` is too long and that of
  efficiency is too high.
- `links` is the bandwidth, in one direction, of the links in use: two links
  along an axis that is a ring, one along any other axis. On v5e, axes of
  {ring} chips are rings. `hops` is the number of links to the farthest chip.
- Nothing is computed during the sum, because the compiler combines the
  gradients into a few messages at the end, and clipping by the global norm
  needs all of them.

The [scaling book](https://jax-ml.github.io/scaling-book/sharding) derives the
time of the sum and measures about one microsecond for a hop. Google's
specifications of the chips are those for
[v4](https://cloud.google.com/tpu/docs/v4),
[v5e](https://cloud.google.com/tpu/docs/v5e),
[v5p](https://cloud.google.com/tpu/docs/v5p) and
[v6e](https://cloud.google.com/tpu/docs/v6e); the bandwidth of a link is that in
one direction:

{chips}

## The programs

Training steps in mixed_bfloat16, compiled for {compiled}; numbers are those of
one chip:

{programs}

TensorFlow's steps sum float32 gradients. In JAX's steps, XLA sums the gradients
of most weights in bfloat16, so the chips send about half the bytes, and each
gradient is rounded before it is added.

A chip has the same work on {pod} as on {compiled}. Small encoders compiled for
both slices, with {share} examples for each chip, confirm this:

{pods}

## More chips, larger batch

The number of examples for each chip is constant, so the batch grows with the
number of chips. Efficiency is `step(1) / step(n)`. An axis of {ring} or more
chips is a ring, which halves the time of the sum.

{weak}

## More chips, same batch

The chips share the published batch. `flop` is proportional to the share of a
chip; so is `bytes`, except for the {update} bytes that the update reads and
writes for each parameter. Efficiency is `step(1) / (n * step(n))`. A cell is
empty if there are more chips than examples.

{strong}

The models are small: on many chips, little computation is left for each chip,
but the time of the sum remains. Therefore use a larger slice for a larger
batch, or better, for several runs at the same time.

## Programs that gather numbers

TPUs gather single numbers one after another. The compiler writes such a gather
as a loop, and counts all bytes of its arrays for each iteration. Therefore
sums and products replace gathers from tables of at most {few} entries, on JAX
and in programs of TensorFlow for TPUs. The programs of `enwik8` that still need
more than {large} times the bytes of `NoPE`:

{gathers}

For longer sequences, `RandomizedRelativeEncoding` computes the scores of a
query for all differences of ranks, and gathers one for each key. If ranks were
the indices of the tokens, shifted rows could replace this gather. But positions
may be given in any order, which is not known when a program is compiled, so the
program would still contain the gather. With {short} tokens, a table of the
distances of all pairs is small enough, and no number is gathered.
`ClippedBias` gathers a row of its table for each pair.

## What the estimate ignores

- The time to start a program and each of its operations. In steps that take
  less than a millisecond, this is most of the time.
- The time in which the host draws the batches.
- The padding of small matrices to the size of the chip's matrix units.
- The time to add the gradients; only their transfer counts.
"""


def make_page():
    """Returns the text of the page.

    Raises:
        KeyError: If a program is not in the file of results.
    """
    results = Results(RESULTS)
    found = [_find_row(results, flags) for flags in TRAINERS]
    pairs = [
        [
            _find_row(
                results,
                {
                    "backend": "tensorflow",
                    "trainer": "encoder",
                    "encoding": encoding,
                    **slice_,
                },
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
        few=FEW_ENTRIES,
        large=LARGE,
        short=found[1]["tokens"],
        gathers=_format_gathers(results),
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
        "backend",
        "trainer",
        "encoding",
        "tokens",
        "examples",
        "Gflop",
        "GB",
        "MB of gradients",
        "messages",
        "ms of products",
        "ms of memory access",
    )
    rows = [
        (
            BACKENDS[row["backend"]],
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


def _format_gathers(results):
    """Formats the programs of texts with many more bytes than that of NoPE."""
    found = {}
    for row in results:
        if row["trainer"] == "enwik8" and row["status"] == "compiled":
            fused = row.get("fused", "never") == "always"
            place = (row["backend"], row["topology"], row["mode"])
            found.setdefault((*place, row["tokens"], fused), []).append(row)
    rows = []
    for (backend, _, mode, tokens, _), of_place in found.items():
        alone = [row for row in of_place if row["encoding"] == "NoPE"]
        rows += [
            (
                BACKENDS[backend],
                {"train": "training step", "evaluate": "evaluation"}[mode],
                f"{tokens:,}",
                f"`{row['encoding']}`",
                f"{row['bytes'] / 1e9:,.1f}",
                f"{alone[0]['bytes'] / 1e9:,.1f}",
            )
            for row in of_place
            if alone and row["bytes"] > LARGE * alone[0]["bytes"]
        ]
    head = ("backend", "program", "tokens", "encoding", "GB", "GB of `NoPE`")
    return table(head, sorted(rows))


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
            _describe_trainer(row),
            *(
                f"{estimate_weak_efficiency(row, topology):.0%}"
                for topology in SLICES
            ),
        )
        for row in found
    ]
    return table(("efficiency by number of chips", *_NUMBERS), rows)


def _format_strong(found):
    rows = [
        (
            _describe_trainer(row),
            f"{row['batch_size']}",
            *(
                f"{estimate_strong_efficiency(row, topology):.0%}"
                if topology.chips <= row["batch_size"]
                else ""
                for topology in SLICES
            ),
        )
        for row in found
    ]
    return table(("efficiency by number of chips", "batch", *_NUMBERS), rows)


def _describe_trainer(row):
    return f"`{row['trainer']}`, {BACKENDS[row['backend']]}"


def _find_row(results, flags):
    config = resolve(
        TpuCompileConfig,
        PRESETS,
        {"topology": COMPILED, "mode": "train", **flags},
    )
    (program,) = list_programs(config)
    return results[program.key]


def estimate_weak_efficiency(row, topology):
    """Estimates the efficiency if the batch grows with the number of chips.

    Args:
        row: Dict. The results of compiling a training step.
        topology: `Topology` on which the step runs.

    Returns:
        float in `(0, 1]`.
    """
    own = _estimate_own_seconds(row, topology, 1)
    return own / (
        own + estimate_all_reduce_seconds(row["all_reduce_bytes"], topology)
    )


def estimate_strong_efficiency(row, topology):
    """Estimates the efficiency if all chips share one batch.

    Args:
        row: Dict. The results of compiling a training step.
        topology: `Topology` on which the step runs.

    Returns:
        float in `(0, 1]`.
    """
    share = Topology(row["topology"]).chips / topology.chips
    seconds = _estimate_own_seconds(row, topology, share)
    seconds += estimate_all_reduce_seconds(row["all_reduce_bytes"], topology)
    alone = _estimate_own_seconds(row, topology, share * topology.chips)
    return alone / (topology.chips * seconds)


def _estimate_own_seconds(row, topology, share):
    """Estimates the seconds in which a chip computes its part of a step.

    Args:
        row: Dict. The results of compiling a training step.
        topology: `Topology` on which the step runs.
        share: float. The chip's examples as a multiple of those in the row.
    """
    fixed = min(UPDATE_BYTES * row["trained_parameters"], row["bytes"])
    moved = fixed + (row["bytes"] - fixed) * share
    chip = topology.chip
    return max(row["flops"] * share / chip.flops, moved / chip.bandwidth)


if __name__ == "__main__":
    PAGE.write_text(make_page())
    print(f"page: {PAGE}")
