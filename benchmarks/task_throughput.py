"""Measures how many examples per second each task draws, on one core.

python -m benchmarks.task_throughput
"""

import statistics
import time

import tensorflow as tf
from absl import app, flags

from benchmarks.measure import DEFINE_count, DEFINE_names, write_report
from datasets.tasks import TASKS

FLAGS = flags.FLAGS
DEFINE_names("tasks", list(TASKS), "Tasks to measure.", TASKS)
flags.DEFINE_list("lengths", ["40", "500"], "Lengths to measure.")
DEFINE_count("batch_size", 128, "Number of examples in a batch.")
DEFINE_count("rounds", 5, "Number of turns of every task.")
flags.DEFINE_float("seconds", 0.5, "Minimum duration of a turn, in seconds.")
flags.DEFINE_string(
    "output", "benchmarks/results/task_throughput.json", "File for the report."
)


def make_draw(task):
    """Makes a traced function that draws a batch for a step and a length."""
    return tf.function(
        lambda step, length: task.sample(
            tf.stack([0, step]), FLAGS.batch_size, length
        ),
        input_signature=[
            tf.TensorSpec((), tf.int64),
            tf.TensorSpec((), tf.int32),
        ],
    )


def measure_speed(function, length):
    """Measures the examples per second of one turn."""
    start, batches = time.perf_counter(), 0
    while True:
        function(tf.constant(batches, tf.int64), tf.constant(length))
        batches += 1
        seconds = time.perf_counter() - start
        if seconds > FLAGS.seconds:
            return batches * FLAGS.batch_size / seconds


def main(argv):
    """Measures all tasks in turns and writes the report."""
    del argv
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    functions = {name: make_draw(TASKS[name]) for name in FLAGS.tasks}
    rows = []
    for length in map(int, FLAGS.lengths):
        speeds = {name: [] for name in functions}
        for _ in range(FLAGS.rounds):
            for name, function in functions.items():
                speeds[name].append(measure_speed(function, length))
        for name, values in speeds.items():
            speed = statistics.median(values)
            rows.append(
                {"task": name, "length": length, "examples_per_second": speed}
            )
            print(f"{name:30s}{length:6d}{speed:12,.0f} examples/s", flush=True)
    write_report(
        FLAGS.output,
        "benchmarks.task_throughput",
        {"batch_size": FLAGS.batch_size, "rows": rows},
    )


if __name__ == "__main__":
    app.run(main)
