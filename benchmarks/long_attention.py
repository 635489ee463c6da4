"""Measures time and memory of attention over long sequences.

One causal attention layer computes a forward and a backward pass with the
gradients of its inputs and all weights. Every encoding has its own process, in
which it takes turns with a layer without an encoding. The peer is
`keras.layers.MultiHeadAttention`.

    python -m benchmarks.long_attention
"""

import functools
import multiprocessing
import statistics

import keras
from absl import app, flags

from benchmarks.attention_pass import make_inputs, make_pass, measure_passes
from benchmarks.measure import (
    DEFINE_count,
    DEFINE_names,
    compare_speeds,
    make_encoding,
    measure_rows,
    time_in_turns,
)
from keras_lengen.layers import ENCODINGS, MultiHeadAttention

FLAGS = flags.FLAGS
PEER = "keras.layers.MultiHeadAttention"
LAYERS = ["NoPE", PEER, *(name for name in ENCODINGS if name != "NoPE")]
flags.DEFINE_list("lengths", ["512", "2025", "8192"], "Lengths.")
DEFINE_names("layers", LAYERS, f"Encodings to measure, and {PEER}.", LAYERS)
DEFINE_count("num_heads", 8, "Attention heads.")
DEFINE_count("key_dim", 32, "Width of a head.")
DEFINE_count("rounds", 3, "Number of turns; 1 above 4,096 tokens.")
flags.DEFINE_bool("compile", True, "Whether XLA compiles the passes.")
flags.DEFINE_string(
    "output", "benchmarks/results/long_attention.json", "File for the report."
)


def make_function(name, longest, num_heads, key_dim, compile):
    """Makes the layer of Keras, or ours with an encoding, and its pass."""
    if name == PEER:
        attention = keras.layers.MultiHeadAttention(num_heads, key_dim)
        return attention, make_pass(attention, compile=compile)
    encoding, added = make_encoding(name, longest), None
    if encoding.stage == "embeddings":
        encoding, added = None, encoding
    attention = MultiHeadAttention(num_heads, key_dim, encoding=encoding)
    return attention, make_pass(attention, compile=compile, encoding=added)


def measure(name, lengths, num_heads, key_dim, rounds, compile):
    """Measures memory and then time in this process, by length."""
    options = (max(lengths), num_heads, key_dim, compile)
    attention, run = make_function(name, *options)
    peaks = {
        length: peak
        for length, _, peak in measure_passes(attention, run, lengths)
    }
    functions = {name: run}
    if name != "NoPE":
        _, functions["NoPE"] = make_function("NoPE", *options)
    by_length = {}
    for length in lengths:
        inputs = make_inputs(attention, length)
        seconds = time_in_turns(
            {
                each: functools.partial(function, inputs)
                for each, function in functions.items()
            },
            rounds=rounds if length <= 4096 else 1,
            repeats=max(1, 2048 // length),
        )
        by_length[length] = {
            "seconds": statistics.median(seconds[name]),
            "time_of_nope": 1 / compare_speeds(seconds[name], seconds["NoPE"]),
            "peak_mebibytes": peaks[length] / 2**20,
        }
    return by_length


def main(argv):
    """Measures all encodings and lengths and writes the report."""
    del argv
    options = {
        "lengths": sorted(map(int, FLAGS.lengths)),
        "num_heads": FLAGS.num_heads,
        "key_dim": FLAGS.key_dim,
        "rounds": FLAGS.rounds,
        "compile": FLAGS.compile,
    }

    def measure_alone(name):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            by_length = pool.apply(measure, (name, *options.values()))
        return {"recipe": name, "by_length": by_length}

    measure_rows(
        FLAGS.output,
        "benchmarks.long_attention",
        options,
        LAYERS,
        FLAGS.layers,
        measure_alone,
    )


if __name__ == "__main__":
    app.run(main)
