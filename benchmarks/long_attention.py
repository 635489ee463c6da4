"""Measures time and memory of attention over long sequences.

One attention layer computes a forward and a backward pass with the gradients of
its inputs and all weights. With chunks of queries, memory grows with the
length; with all scores at once, with its square. Every encoding and chunk size
has its own process.

    python -m benchmarks.long_attention
"""

import multiprocessing

import keras
from absl import app, flags

from benchmarks.attention_pass import measure_passes
from benchmarks.measure import DEFINE_count, make_encoding, write_report
from keras_lengen.layers import MultiHeadAttention

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "lengths", ["1024", "2048", "4096", "8192", "16384"], "Lengths."
)
flags.DEFINE_list(
    "encodings",
    [
        "NoPE",
        "RoPE",
        "RelativeEncoding",
        "RandomizedRelativeEncoding",
        "ShawEncoding",
        "ALiBi",
        "LogKERPLE",
        "Sandwich",
        "T5Bias",
        "FIRE",
    ],
    "Encodings to measure.",
)
DEFINE_count("num_heads", 8, "Attention heads.")
DEFINE_count("key_dim", 32, "Width of a head.")
DEFINE_count("longest_direct", 4096, "Maximum length without chunks.")
flags.DEFINE_bool("compile", True, "Whether XLA compiles the passes.")
flags.DEFINE_string(
    "output", "benchmarks/results/long_attention.json", "File for the report."
)


def measure(
    lengths, encoding, chunk_size, longest, num_heads, key_dim, compile
):
    """Measures seconds and peak memory in this process, by length."""
    attention = MultiHeadAttention(
        num_heads,
        key_dim,
        encoding=make_encoding(encoding, longest),
        chunk_size=chunk_size,
    )
    rows = []
    for row in measure_passes(attention, lengths, compile=compile):
        rows.append(row)
        length, seconds, peak = row
        print(
            f"{encoding:28s}{chunk_size or 'direct':>8s}{length:7d}"
            f"{seconds:9.2f} s{peak / 2**20:9.0f} MiB",
            flush=True,
        )
    return rows


def main(argv):
    """Measures all encodings and lengths and writes the report."""
    del argv
    lengths = sorted(map(int, FLAGS.lengths))
    rows = []
    for encoding in FLAGS.encodings:
        for chunk_size in ("auto", None):
            those = [
                length
                for length in lengths
                if chunk_size or length <= FLAGS.longest_direct
            ]
            options = (
                encoding,
                chunk_size,
                max(lengths),
                FLAGS.num_heads,
                FLAGS.key_dim,
                FLAGS.compile,
            )
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found = pool.apply(measure, (those, *options))
            for length, seconds, peak in found:
                rows.append(
                    {
                        "encoding": encoding,
                        "chunk_size": chunk_size,
                        "length": length,
                        "seconds": seconds,
                        "peak_mebibytes": peak / 2**20,
                    }
                )
    content = {
        "num_heads": FLAGS.num_heads,
        "key_dim": FLAGS.key_dim,
        "compile": FLAGS.compile,
        "rows": rows,
    }
    write_report(FLAGS.output, "benchmarks.long_attention", content)


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    app.run(main)
