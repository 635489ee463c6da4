"""Examples per second that each task draws and answers, on one core.

python -m benchmarks.task_throughput
"""

import statistics
import time

import tensorflow as tf
from absl import app, flags

from benchmarks.measure import (
    command_line,
    write_report,
)
from datasets.tasks import TASKS

FLAGS = flags.FLAGS
flags.DEFINE_list("tasks", list(TASKS), "Tasks to measure.")
flags.DEFINE_list("lengths", ["40", "500"], "Lengths to measure.")
flags.DEFINE_integer("batch_size", 128, "Examples in a batch.")
flags.DEFINE_integer("rounds", 5, "Turns of every task.")
flags.DEFINE_float("seconds", 0.5, "Least duration of a turn.")
flags.DEFINE_string(
    "output", "benchmarks/results/task_throughput.json", "The report."
)


def sampler(task):
    """A traced function from a step and a length to the inputs of a batch."""
    return tf.function(
        lambda step, length: task.sample(
            tf.stack([0, step]), FLAGS.batch_size, length
        ),
        input_signature=[
            tf.TensorSpec((), tf.int64),
            tf.TensorSpec((), tf.int32),
        ],
    )


def examples_per_second(function, length):
    """Speed over one turn."""
    start, batches = time.perf_counter(), 0
    while True:
        function(tf.constant(batches, tf.int64), tf.constant(length))
        batches += 1
        seconds = time.perf_counter() - start
        if seconds > FLAGS.seconds:
            return batches * FLAGS.batch_size / seconds


def main(argv):
    """Measures all tasks, which take turns, and writes the report."""
    del argv
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    functions = {name: sampler(TASKS[name]) for name in FLAGS.tasks}
    rows = []
    for length in map(int, FLAGS.lengths):
        speeds = {name: [] for name in functions}
        for _ in range(FLAGS.rounds):
            for name, function in functions.items():
                speeds[name].append(examples_per_second(function, length))
        for name, values in speeds.items():
            speed = statistics.median(values)
            rows.append(
                {"task": name, "length": length, "examples_per_second": speed}
            )
            print(f"{name:30s}{length:6d}{speed:12,.0f} examples/s", flush=True)
    command = command_line("benchmarks.task_throughput")
    write_report(
        FLAGS.output, command, {"batch_size": FLAGS.batch_size, "rows": rows}
    )


if __name__ == "__main__":
    app.run(main)
