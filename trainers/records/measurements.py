"""Results as a tidy table: one measured number in a row.

`python -m trainers.compare` writes it as comparison.csv, which pandas reads:
`pandas.read_csv("comparison.csv")`.
"""

import csv
import io
from typing import NamedTuple

from trainers.options.option import options
from trainers.records.opened_run import registered

ENDS = ("low", "high")


class Measurement(NamedTuple):
    """A metric at a length, with its 95% interval.

    Attributes:
        metric: str. Its name, such as `"accuracy"`.
        length: int.
        value: float.
        low: float, the lower end of the interval; `None`: it is not known.
        high: float, the upper end, or `None`.
    """

    metric: str
    length: int
    value: float
    low: float | None
    high: float | None


def list_measurements(results):
    """Lists what a run measured at each length.

    Args:
        results: Dict, the content of `results.json`.

    Returns:
        List of `Measurement`.
    """
    curves = {
        name.removesuffix("_by_length"): by_length
        for name, by_length in results["final"].items()
        if name.endswith("_by_length")
    }
    bounds = {f"{metric}_{end}" for metric in curves for end in ENDS}
    return [
        Measurement(
            metric,
            int(length),
            float(value),
            *(curves.get(f"{metric}_{end}", {}).get(length) for end in ENDS),
        )
        for metric, by_length in curves.items()
        if metric not in bounds
        for length, value in by_length.items()
    ]


def make_csv(runs):
    """Makes a CSV file with a row for each run, metric and length.

    Args:
        runs: Dict from the names of runs to the contents of `results.json`.

    Returns:
        bytes. The columns are `run`, `trainer`, the flags that differ between
        the runs, `seed`, `trained_steps`, and the fields of `Measurement`.
    """
    flags = list(dict.fromkeys([*list_differing(runs.values()), "seed"]))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    head = ("run", "trainer", *flags, "trained_steps", *Measurement._fields)
    writer.writerow(head)
    for name, results in runs.items():
        about = (
            *(name, results["trainer"]),
            *(results["config"].get(flag, "") for flag in flags),
            results["final"]["step"],
        )
        for measurement in list_measurements(results):
            writer.writerow((*about, *measurement))
    return file.getvalue().encode(errors="replace")


def list_differing(runs):
    """Lists the flags by which runs differ and that results depend on.

    Args:
        runs: Iterable of dicts, contents of `results.json`.

    Returns:
        List of str, in the order of the flags.
    """
    found: dict[str, set] = {}
    for results in runs:
        known = options(registered()[results["trainer"]].config)
        for name, option in known.items():
            if option.changes_result:
                # A run that is older than a flag has its default.
                value = results["config"].get(name, option.default)
                found.setdefault(name, set()).add(repr(value))
    return [name for name, values in found.items() if len(values) > 1]
