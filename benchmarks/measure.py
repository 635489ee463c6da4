"""Measures several variants in one run, because only ratios are comparable.

Other programs and heat slow all variants of a run alike; absolute times differ
between runs.
"""

import functools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import tensorflow as tf
from absl import flags

from datasets.files import write_whole
from keras_lengen.checks.constructors import constructor_arguments
from keras_lengen.layers import ENCODINGS
from trainers.records.results import versions

# TensorFlow warns about retracing, which the variants need.
tf.get_logger().setLevel("ERROR")


DEFINE_count = functools.partial(flags.DEFINE_integer, lower_bound=1)
"""Defines a flag that is a number of things, at least one."""


def DEFINE_names(name, default, help, known):
    """Defines a flag that is a list of known names.

    Args:
        name: str, name of the flag.
        default: List of str.
        help: str.
        known: Collection of str.
    """
    flags.DEFINE_list(name, default, help)
    flags.register_validator(
        name,
        lambda names: set(names) <= set(known),
        message=f"names of --{name} are {', '.join(known)}.",
    )


def make_encoding(name, longest):
    """Makes one of our encodings; its ranges and lengths are `longest`."""
    needed = {"max_position", "train_length", "original_length"}
    accepted = constructor_arguments(ENCODINGS[name]).keys() & needed
    return ENCODINGS[name](**dict.fromkeys(accepted, longest))


def time_in_turns(variants, *, rounds, repeats):
    """Measures the time of several variants that take turns.

    Args:
        variants: `{name: function}`; a function returns a tensor, or an array
            of JAX, to wait for.
        rounds: Number of turns of each variant.
        repeats: Number of calls in a turn.

    Returns:
        `{name: [seconds of a call, in each round]}`.
    """
    for function in variants.values():
        np.asarray(function())
    seconds = {name: [] for name in variants}
    for _ in range(rounds):
        for name, function in variants.items():
            start = time.perf_counter()
            for _ in range(repeats):
                result = function()
            np.asarray(result)
            seconds[name].append((time.perf_counter() - start) / repeats)
    return seconds


def compare_speeds(seconds, peer_seconds):
    """Computes the median over rounds of the speed relative to a peer."""
    return statistics.median(
        peer / ours for ours, peer in zip(seconds, peer_seconds, strict=True)
    )


class PeakMemory:
    """Measures the peak of the resident memory of this process.

    TensorFlow keeps the memory it has allocated, so every variant needs its own
    process and must run with its sizes in ascending order. Linux only.
    """

    def __init__(self):
        self.start = _read_status("VmRSS")

    def measure_bytes(self, function):
        """Measures the peak of a call in bytes, without the memory before."""
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        result = function()
        # Waits for the result without copying it.
        result[(0,) * len(result.shape)].numpy()
        return _read_status("VmHWM") - self.start


def _read_status(name):
    text = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", text)[1])


def run_measured(command, **options):
    """Runs a command to its end, and measures time and memory. Linux only.

    Args:
        command: List of str.
        **options: Further arguments of `subprocess.Popen`.

    Returns:
        Dict of numbers: `seconds`, `processor_seconds`, `peak_gibibytes`.

    Raises:
        SystemExit: If the command fails.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, **options)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed, see above.")
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        # Linux counts in KiB.
        "peak_gibibytes": usage.ru_maxrss / 2**20,
    }


def write_report(path, module, content):
    """Writes a JSON report with the command, the versions and the machine.

    Args:
        path: File for the report.
        module: Name of the benchmark's module, for the command.
        content: Dict of results.
    """
    report = {
        "command": " ".join([f"python -m {module}", *sys.argv[1:]]),
        "versions": versions(),
        "cores": os.cpu_count(),
        "devices": [device.name for device in tf.config.list_logical_devices()],
        **content,
    }
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_whole(path) as file:
        file.write((json.dumps(report, indent=2) + "\n").encode())
    print(f"report: {path}")


def measure_rows(path, module, options, recipes, chosen, measure, **content):
    """Measures recipes, and writes the report after each.

    Recipes that the report has are not measured again. A report of other
    options ends the program with one line and status 2.

    Args:
        path: File for the report.
        module: Name of the benchmark's module, for the command.
        options: Dict of the flags that change results.
        recipes: Names of all recipes, in the order of the report.
        chosen: Names of the recipes to measure.
        measure: Function from a name to a row, a dict whose `recipe` is it.
        **content: Other results of the report.

    Returns:
        List of all rows of the report.
    """
    path = pathlib.Path(path)
    report = {"options": options, **content, "rows": []}
    if path.exists():
        found = json.loads(path.read_text())
        if found["options"] != options:
            print(
                f"{path} is a report of other options: choose another "
                "--output.",
                file=sys.stderr,
            )
            sys.exit(2)
        report |= {name: found[name] for name in (*content, "rows")}
    rows = report["rows"]
    order = list(recipes)
    for name in chosen:
        if name not in [row["recipe"] for row in rows]:
            row = measure(name)
            print(json.dumps(row, indent=2))
            rows.append(row)
            rows.sort(key=lambda row: order.index(row["recipe"]))
            write_report(path, module, report)
    return rows
