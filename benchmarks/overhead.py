"""Measures what the code of this library adds to Keras.

It counts the operations of an encoder's graph, and measures the time to trace
the graph and the time of an eager call of attention. The peers are an encoder
of the same size made of `keras.layers` and `keras.layers.MultiHeadAttention`,
both without positions.

    python -m benchmarks.overhead
"""

import functools
import statistics

import keras
import tensorflow as tf
from absl import app, flags

from benchmarks.encoders import (
    MAX_POSITION,
    make_encoder,
    make_keras_encoder,
)
from benchmarks.measure import (
    DEFINE_count,
    compare_speeds,
    make_encoding,
    time_in_turns,
    write_report,
)
from keras_lengen.layers import MultiHeadAttention

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "encodings",
    ["NoPE", "RoPE", "RandomizedRoPE", "ALiBi", "RandomizedRelativeEncoding"],
    "Encodings to measure.",
)
DEFINE_count("num_layers", 5, "Number of layers of the encoders.")
DEFINE_count("rounds", 9, "Number of turns of every variant.")
DEFINE_count("repeats", 20, "Number of eager calls in a turn.")
flags.DEFINE_string(
    "output", "benchmarks/results/overhead.json", "File for the report."
)

PEER = "keras.layers"
SHAPE = (2, 16, 64)
"""Batch size, tokens and width of the inputs of attention."""
NUM_HEADS = 8


def trace_operations(model):
    """Traces a model anew for all shapes of inputs.

    Args:
        model: Model from token ids to logits.

    Returns:
        Scalar tensor, the number of operations of the graph: all of them, with
        constants and placeholders.
    """

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)])
    def forward(token_ids):
        return model(token_ids, training=False)

    graph = forward.get_concrete_function().graph
    return tf.constant(len(graph.get_operations()))


def make_call(attention):
    """Makes a function that calls a layer of attention eagerly."""
    x = tf.random.stateless_normal(SHAPE, (0, 1))
    return lambda: attention(x, x, training=False)


def time_beside_peer(peer, variants, *, repeats):
    """Measures the time of each variant in turns with its peer.

    Args:
        peer: Function of Keras layers.
        variants: `{name: function}`.
        repeats: Number of calls in a turn.

    Returns:
        `{name: (seconds, ratio)}`, medians over the rounds, with the peer
        first; a ratio is the time as a multiple of the peer's.
    """
    times, ratios, peers = {}, {}, []
    for name, function in variants.items():
        seconds = time_in_turns(
            {PEER: peer, name: function}, rounds=FLAGS.rounds, repeats=repeats
        )
        times[name] = seconds[name]
        ratios[name] = compare_speeds(seconds[PEER], seconds[name])
        peers += seconds[PEER]
    return {
        name: (statistics.median(seconds), ratios.get(name, 1.0))
        for name, seconds in {PEER: peers, **times}.items()
    }


def measure():
    """Measures all encodings; returns rows of the table."""
    models = {PEER: make_keras_encoder(FLAGS.num_layers)}
    width = SHAPE[-1] // NUM_HEADS
    layers = {PEER: keras.layers.MultiHeadAttention(NUM_HEADS, width)}
    for name in FLAGS.encodings:
        models[name] = make_encoder(name, FLAGS.num_layers)
        layers[name] = MultiHeadAttention(
            NUM_HEADS, width, encoding=make_encoding(name, MAX_POSITION)
        )
    traces = {
        name: functools.partial(trace_operations, model)
        for name, model in models.items()
    }
    calls = {name: make_call(layer) for name, layer in layers.items()}
    operations = {name: int(trace()) for name, trace in traces.items()}
    tracing = time_beside_peer(traces.pop(PEER), traces, repeats=1)
    calling = time_beside_peer(calls.pop(PEER), calls, repeats=FLAGS.repeats)
    return [
        {
            "encoding": name,
            "operations": operations[name],
            "operations_of_keras": operations[name] / operations[PEER],
            "trace_milliseconds": 1000 * tracing[name][0],
            "trace_of_keras": tracing[name][1],
            "call_milliseconds": 1000 * calling[name][0],
            "call_of_keras": calling[name][1],
        }
        for name in operations
    ]


def print_table(rows):
    """Prints the numbers, each with its ratio to the number of Keras."""
    columns = {
        "operations": ("operations", "operations_of_keras", 0),
        "ms to trace": ("trace_milliseconds", "trace_of_keras", 0),
        "ms of a call": ("call_milliseconds", "call_of_keras", 2),
    }
    print(" " * 28 + "".join(f"{name:>14s}{'ratio':>7s}" for name in columns))
    for row in rows:
        print(
            f"{row['encoding']:28s}"
            + "".join(
                f"{row[number]:14.{digits}f}{row[ratio]:7.2f}"
                for number, ratio, digits in columns.values()
            )
        )


def main(argv):
    """Measures all encodings, prints the table and writes the report."""
    del argv
    rows = measure()
    print_table(rows)
    content = {
        "num_layers": FLAGS.num_layers,
        "attention_inputs": SHAPE,
        "num_heads": NUM_HEADS,
        "rows": rows,
    }
    write_report(FLAGS.output, "benchmarks.overhead", content)


if __name__ == "__main__":
    app.run(main)
