"""Timing of several variants in one run, so that their ratios mean something.

A machine that is shared or warms up slows all variants alike; absolute times
do not compare between runs.
"""

import json
import os
import pathlib
import re
import statistics
import sys
import time

import tensorflow as tf

from keras_lengen.arguments import constructor_arguments
from keras_lengen.layers import ENCODINGS
from trainers.records.workdir import versions

# It warns of programs traced one after the other, as variants must be.
tf.get_logger().setLevel("ERROR")


def make_encoding(name, longest):
    """One of our encodings, with every range and length it takes `longest`."""
    needed = {"max_position", "train_length", "original_length"}
    accepted = constructor_arguments(ENCODINGS[name]).keys() & needed
    return ENCODINGS[name](**dict.fromkeys(accepted, longest))


def interleaved(variants, *, rounds, repeats):
    """Seconds of every variant in every round, the variants taking turns.

    Args:
        variants: `{name: function}`; a function returns a tensor to wait for.
        rounds: How often each variant has its turn.
        repeats: Calls in a turn; a turn's time is divided by them.

    Returns:
        `{name: [seconds of each round]}`.
    """
    for function in variants.values():
        function().numpy()
    seconds = {name: [] for name in variants}
    for _ in range(rounds):
        for name, function in variants.items():
            start = time.perf_counter()
            for _ in range(repeats):
                result = function()
            result.numpy()
            seconds[name].append((time.perf_counter() - start) / repeats)
    return seconds


def speed_ratio(seconds, peer_seconds):
    """Median over rounds of how much faster than its peer a variant ran."""
    return statistics.median(
        peer / own for own, peer in zip(seconds, peer_seconds, strict=True)
    )


class PeakMemory:
    """Resident memory of this process at its highest, from now on.

    TensorFlow keeps what it has allocated once, so a variant needs a process
    of its own, and its sizes must grow. Linux only.
    """

    def __init__(self):
        self.start = _status("VmRSS")

    def bytes_of(self, function):
        """Bytes at the highest point of a call beyond those at the start."""
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        result = function()
        # Waits for the result without a copy of it.
        result[(0,) * len(result.shape)].numpy()
        return _status("VmHWM") - self.start


def _status(name):
    text = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", text)[1])


def command_line(module):
    """The command that runs a module with the arguments of this run."""
    return " ".join([f"python -m {module}", *sys.argv[1:]])


def write_report(path, command, content):
    """Writes a JSON report with the command, the versions and the machine."""
    report = {
        "command": command,
        "versions": versions(),
        "cores": os.cpu_count(),
        "devices": [device.name for device in tf.config.list_logical_devices()],
        **content,
    }
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
    print(f"report: {path}")
