"""Measures time and memory of attention with a sliding window.

One causal attention layer computes a forward and a backward pass with the
gradients of its inputs and all weights. With a window, time and memory grow
with the length; without one, time grows with its square. Every variant has its
own process.

    python -m benchmarks.sliding_window
"""

import multiprocessing

import keras
from absl import app, flags

from benchmarks.attention_pass import make_pass, measure_passes
from benchmarks.measure import DEFINE_count, write_report
from keras_lengen.layers import MultiHeadAttention, RoPE

FLAGS = flags.FLAGS
flags.DEFINE_list("lengths", ["4096", "8192", "16384"], "Lengths.")
DEFINE_count("window", 1024, "Keys in the window.")
DEFINE_count("num_heads", 2, "Attention heads.")
DEFINE_count("key_dim", 32, "Width of a head.")
DEFINE_count("rounds", 2, "Measurements of each variant; the fastest counts.")
flags.DEFINE_bool("compile", True, "Whether XLA compiles the passes.")
flags.DEFINE_string(
    "output", "benchmarks/results/sliding_window.json", "File for the report."
)


def measure(lengths, rounds, window, num_heads, key_dim, compile):
    """Measures seconds and peak memory in this process, by length."""
    attention = MultiHeadAttention(
        num_heads, key_dim, encoding=RoPE(), sliding_window=window
    )
    rows = []
    run = make_pass(attention, compile=compile)
    for length, seconds, peak in measure_passes(
        attention, run, lengths, rounds=rounds
    ):
        rows.append(
            {
                "sliding_window": window,
                "length": length,
                "seconds": seconds,
                "peak_mebibytes": peak / 2**20,
            }
        )
        print(
            f"{window or 'all keys':>8}{length:7d}{seconds:9.2f} s"
            f"{peak / 2**20:9.0f} MiB",
            flush=True,
        )
    return rows


def main(argv):
    """Measures all lengths with and without the window; writes the report."""
    del argv
    lengths = sorted(map(int, FLAGS.lengths))
    options = (FLAGS.num_heads, FLAGS.key_dim, FLAGS.compile)
    rows = []
    for window in (FLAGS.window, None):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows += pool.apply(
                measure, (lengths, FLAGS.rounds, window, *options)
            )
    seconds = {
        (row["sliding_window"], row["length"]): row["seconds"] for row in rows
    }
    first, last = lengths[0], lengths[-1]
    content = {
        "num_heads": FLAGS.num_heads,
        "key_dim": FLAGS.key_dim,
        "compile": FLAGS.compile,
        "speedup_at_longest": seconds[None, last] / seconds[FLAGS.window, last],
        "growth": {
            "length": last / first,
            "seconds_with_window": seconds[FLAGS.window, last]
            / seconds[FLAGS.window, first],
            "seconds_without": seconds[None, last] / seconds[None, first],
        },
        "rows": rows,
    }
    write_report(FLAGS.output, "benchmarks.sliding_window", content)


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    app.run(main)
