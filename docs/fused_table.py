"""Table of the programs for TPUs that differ in fused attention only."""

from docs.build_scaling import RESULTS
from keras_lengen.layers import ENCODINGS
from trainers.records.markdown import table
from trainers.tpu.programs import MODES
from trainers.tpu.table import Results

CHIPS = ("v5e", "v4", "v5p", "v6e")
TRAINERS = ("enwik8", "imagenet")
HEAD = (
    *("chip", "trainer", "program", "tokens", "examples", "encoding"),
    *("GB", "GB, fused", "of `NoPE`, fused", "ms", "ms, fused"),
)


def make_table():
    """Returns a table of all programs of JAX that are compiled fused."""
    found = {}
    for row in Results(RESULTS):
        if (
            row["backend"] == "jax"
            and row["trainer"] in TRAINERS
            and row["encoding"] in ENCODINGS
            and row["status"] == "compiled"
        ):
            fused = row.get("fused", "false") == "true"
            found.setdefault(_find_place(row), {})[fused] = row
    places = sorted(place for place, rows in found.items() if True in rows)
    return table(HEAD, (_make_cells(place, found) for place in places))


def _find_place(row):
    """Returns a sortable key of the program, apart from fusion."""
    return (
        CHIPS.index(row["topology"].partition(":")[0]),
        TRAINERS.index(row["trainer"]),
        MODES.index(row["mode"]),
        row["tokens"],
        list(ENCODINGS).index(row["encoding"]),
    )


def _make_cells(place, found):
    plain, fused = (found[place].get(each) for each in (False, True))
    # NoPE is the first encoding.
    alone = found.get((*place[:-1], 0), {}).get(True)
    return (
        fused["topology"].partition(":")[0],
        f"`{fused['trainer']}`",
        {"train": "training step", "evaluate": "evaluation"}[fused["mode"]],
        f"{fused['tokens']:,}",
        f"{fused['examples_per_chip']}",
        f"`{fused['encoding']}`",
        "" if plain is None else f"{plain['bytes'] / 1e9:.2f}",
        f"{fused['bytes'] / 1e9:.2f}",
        "" if alone is None else f"{fused['bytes'] / alone['bytes']:.3f}",
        "" if plain is None else f"{1e3 * plain['step_seconds']:.2f}",
        f"{1e3 * fused['step_seconds']:.2f}",
    )
