"""Tables of the programs for TPUs that differ in fused attention only."""

from docs.build_scaling import RESULTS
from keras_lengen.layers import ENCODINGS
from trainers.records.markdown import table
from trainers.tpu.programs import MODES
from trainers.tpu.table import Results

CHIPS = ("v5e", "v4", "v5p", "v6e")
TRAINERS = ("enwik8", "imagenet")
PROGRAM = ("trainer", "program", "tokens", "encoding")


def make_table():
    """Returns a table of the bytes and times of programs for v5e."""
    found = _read_rows()
    head = (*PROGRAM, "examples", "GB", "GB, fused", "of `NoPE`, fused")
    return table(
        (*head, "ms", "ms, fused"),
        (
            (
                *_name(rows[True]),
                str(rows[True]["examples_per_chip"]),
                _format_bytes(rows.get(False)),
                _format_bytes(rows[True]),
                _divide(rows[True], found[(*place[:-1], 0)][True]),
                _format_time(rows.get(False)),
                _format_time(rows[True]),
            )
            for place, rows in found.items()
            if CHIPS[place[0]] == "v5e"
        ),
    )


def make_times():
    """Returns a table of the times of programs for the other chips."""
    places = {}
    for (chip, *place), rows in _read_rows().items():
        places.setdefault(tuple(place), {})[CHIPS[chip]] = rows
    head = [f"{chip}{kind}" for chip in CHIPS[1:] for kind in ("", ", fused")]
    return table(
        (*PROGRAM, *head),
        (
            (
                *_name(of_chip["v4"][True]),
                *(
                    _format_time(of_chip[chip].get(fused))
                    for chip in CHIPS[1:]
                    for fused in (False, True)
                ),
            )
            for of_chip in places.values()
            if of_chip.keys() >= {*CHIPS}
        ),
    )


def _read_rows():
    """Returns the rows of the programs that are compiled with fused attention.

    Returns:
        Dict from indices of the chip, of the trainer, of the mode, of the
        tokens and of the encoding, in order, to a dict from whether attention
        is fused to the row.
    """
    found = {}
    for row in Results(RESULTS):
        if (
            row["backend"] == "jax"
            and row["trainer"] in TRAINERS
            and row["encoding"] in ENCODINGS
            and row["status"] == "compiled"
        ):
            place = (
                CHIPS.index(row["topology"].partition(":")[0]),
                TRAINERS.index(row["trainer"]),
                MODES.index(row["mode"]),
                row["tokens"],
                # `NoPE` is the first one.
                list(ENCODINGS).index(row["encoding"]),
            )
            fused = row.get("fused", "never") == "always"
            found.setdefault(place, {})[fused] = row
    return {
        place: rows for place, rows in sorted(found.items()) if True in rows
    }


def _name(row):
    mode = {"train": "training step", "evaluate": "evaluation"}[row["mode"]]
    return (
        *(f"`{row['trainer']}`", mode, f"{row['tokens']:,}"),
        f"`{row['encoding']}`",
    )


def _format_bytes(row):
    return "" if row is None else f"{row['bytes'] / 1e9:.2f}"


def _format_time(row):
    return "" if row is None else f"{1e3 * row['step_seconds']:.2f}"


def _divide(row, other):
    return f"{row['bytes'] / other['bytes']:.3f}"
