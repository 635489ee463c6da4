"""Measures how fast text is read, against a model in training, and in memory.

The pipeline of `trainers.enwik8` and a training step of its small model take
turns. Then the pipeline reads texts of several sizes, random bytes on disk.

    python -m benchmarks.text_throughput
"""

import pathlib
import statistics
import tempfile
import time

import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks.measure import DEFINE_count, PeakMemory, write_report
from trainers.engine.backend import make_strategy
from trainers.enwik8 import EXPERIMENT
from trainers.experiment import make_training_step
from trainers.options.fields import resolve

FLAGS = flags.FLAGS
DEFINE_count("rounds", 5, "Number of turns of each.")
DEFINE_count("steps", 10, "Training steps of a turn.")
DEFINE_count("batches", 200, "Batches of a turn of the pipeline.")
flags.DEFINE_list("megabytes", ["10", "1000"], "Sizes of texts.")
flags.DEFINE_string(
    "output", "benchmarks/results/text_throughput.json", "File for the report."
)


def make_config(**given):
    """Returns the small configuration of the trainer, with some values."""
    given = {"encoding": "RoPE", "dataset": "python_source", **given}
    return resolve(EXPERIMENT.config, EXPERIMENT.presets, given)


def read_batches(problem, count):
    """Reads training batches; returns the targets of the last one."""
    dataset = problem.training_batches(
        padded_length=problem.longest_trained,
        first_step=0,
        last_step=count,
        context=tf.distribute.InputContext(),
    )
    for batch in dataset:
        last = batch["targets"]
    return last


def make_turns():
    """Returns functions of a turn that return their number of batches."""
    config, strategy = make_config(), make_strategy("one_device")
    model, optimizer, problem = EXPERIMENT.make_parts(config, strategy)
    step = make_training_step(config, model, optimizer, problem, strategy)
    iterator = step.iterate(0, 10**9)
    done = 0

    def train():
        nonlocal done
        step.run(iterator, done, FLAGS.steps)
        done += FLAGS.steps
        return FLAGS.steps

    def read():
        read_batches(problem, FLAGS.batches)
        return FLAGS.batches

    return {"pipeline": read, "model": train}


def measure_speeds():
    """Measures batches per second of the pipeline and of the model."""
    turns = make_turns()
    speeds = {name: [] for name in turns}
    for turn in turns.values():
        turn()
    for _ in range(FLAGS.rounds):
        for name, turn in turns.items():
            start = time.perf_counter()
            count = turn()
            speeds[name].append(count / (time.perf_counter() - start))
    return speeds


def measure_memory(megabytes, directory):
    """Measures the peak memory of reading a text of a size, in MiB."""
    path = pathlib.Path(directory) / f"{megabytes}"
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(rng.bytes(10**6))
    config = make_config(dataset="files", data_dir=str(path))
    problem = EXPERIMENT.make_problem(config)
    # What TensorFlow needs once.
    read_batches(problem, 1)
    peak = PeakMemory().measure_bytes(
        lambda: read_batches(problem, FLAGS.batches)
    )
    path.unlink()
    return peak / 2**20


def main(argv):
    """Measures and writes the report."""
    del argv
    with tempfile.TemporaryDirectory() as directory:
        memory = {
            size: measure_memory(int(size), directory)
            for size in FLAGS.megabytes
        }
    speeds = measure_speeds()
    ratio = statistics.median(
        pipeline / model
        for pipeline, model in zip(*speeds.values(), strict=True)
    )
    for name, values in speeds.items():
        print(f"{name}: {statistics.median(values):.1f} batches/s")
    print(f"the pipeline is {ratio:.0f} times as fast as the model")
    for size, peak in memory.items():
        print(f"{size} MB of text: {peak:.0f} MiB more memory")
    write_report(
        FLAGS.output,
        "benchmarks.text_throughput",
        {
            "batches_per_second": speeds,
            "pipeline_to_model": ratio,
            "peak_mebibytes_by_megabytes": memory,
        },
    )


if __name__ == "__main__":
    app.run(main)
