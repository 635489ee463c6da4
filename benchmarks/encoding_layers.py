"""Measures time and memory of the forward pass of every encoding layer.

The peer is the KerasHub layer of the same kind, if there is one. Every variant
computes its whole stage: it adds the encoding to embeddings, rotates query and
key, or adds the bias to scores.

    pip install -e '.[tensorflow,benchmarks]'
    python -m benchmarks.encoding_layers
"""

import functools
import itertools
import multiprocessing
import statistics

import keras_hub
import tensorflow as tf
from absl import app, flags

from benchmarks.measure import (
    DEFINE_count,
    DEFINE_names,
    PeakMemory,
    compare_speeds,
    make_encoding,
    time_in_turns,
    write_report,
)
from keras_lengen.layers import ENCODINGS, RoPE

FLAGS = flags.FLAGS
flags.DEFINE_list("lengths", ["256", "1024", "4096", "8192"], "Lengths.")
HALVES = "RoPE(layout='halves')"
"""`RoPE` with the pairs of KerasHub's layer."""
LAYERS = [*ENCODINGS, HALVES]
DEFINE_names("encodings", LAYERS, "Encodings to measure.", LAYERS)
DEFINE_count("num_heads", 4, "Attention heads.")
DEFINE_count("key_dim", 64, "Width of a head.")
DEFINE_count("rounds", 5, "Number of turns of every layer.")
flags.DEFINE_string(
    "output", "benchmarks/results/encoding_layers.json", "File for the report."
)

MAX_POSITION = 2 * 8192
"""`max_position` of the encodings that have one."""


def add_to_input(layer):
    """Makes the stage of a layer that returns the encoding to add."""
    return lambda embeddings: embeddings + layer(embeddings)


def rotate_both(layer):
    """Makes the stage of a rotary layer that takes one tensor."""
    return lambda query, key: tf.concat([layer(query), layer(key)], axis=1)


PEERS = {
    "SinusoidalEncoding": lambda: add_to_input(
        keras_hub.layers.SinePositionEncoding()
    ),
    "LearnedEncoding": lambda: add_to_input(
        keras_hub.layers.PositionEmbedding(MAX_POSITION)
    ),
    "RoPE": lambda: rotate_both(keras_hub.layers.RotaryEmbedding()),
    HALVES: lambda: rotate_both(keras_hub.layers.RotaryEmbedding()),
    "ALiBi": lambda: (
        lambda scores, query, key: keras_hub.layers.AlibiBias()(scores)
    ),
}
"""Functions that make the KerasHub layer of the same kind."""


def make_layer(name):
    """Makes one of our layers."""
    if name == HALVES:
        return RoPE(layout="halves")
    return make_encoding(name, MAX_POSITION)


def make_stage(layer):
    """Makes a function of the stage of one of our layers."""
    if layer.stage == "embeddings":
        return lambda embeddings: layer(embeddings)
    if layer.stage == "rotation":
        # One tensor, so that TensorFlow computes both.
        return lambda query, key: tf.concat(layer(query, key), axis=1)
    return lambda scores, query, key: scores + layer(query, key)


def make_inputs(stage, length, num_heads, key_dim):
    """Makes random arguments of a stage."""
    shape = (1, length, num_heads, key_dim)
    query = tf.random.stateless_normal(shape, (0, 1))
    key = tf.random.stateless_normal(shape, (0, 2))
    if stage == "embeddings":
        return [tf.reshape(query, (1, length, num_heads * key_dim))]
    if stage == "rotation":
        return [query, key]
    shape = (1, num_heads, length, length)
    return [tf.random.stateless_normal(shape, (0, 3)), query, key]


def make_variant(name):
    """Makes the stage and the function of a layer, ours or a peer's."""
    ours = name.removeprefix("KerasHub ")
    layer = make_layer(ours)
    if name == ours:
        return layer.stage, tf.function(make_stage(layer))
    return layer.stage, tf.function(PEERS[ours]())


def measure_memory(name, lengths, num_heads, key_dim):
    """Measures the memory of a variant by length, without its inputs."""
    stage, function = make_variant(name)
    function(*make_inputs(stage, 16, num_heads, key_dim))
    peak, found = PeakMemory(), {}
    for length in lengths:
        arguments = make_inputs(stage, length, num_heads, key_dim)
        size = sum(argument.numpy().nbytes for argument in arguments)
        call = functools.partial(function, *arguments)
        found[length] = max(0, peak.measure_bytes(call) - size)
    return found


def measure(stage, names, length, memory):
    """Measures one stage and length; returns rows of the table."""
    arguments = make_inputs(stage, length, FLAGS.num_heads, FLAGS.key_dim)
    seconds = time_in_turns(
        {
            name: functools.partial(make_variant(name)[1], *arguments)
            for name in names
        },
        rounds=FLAGS.rounds,
        repeats=max(1, 4096 // length),
    )
    rows = []
    for name, times in seconds.items():
        row = {
            "encoding": name,
            "stage": stage,
            "length": length,
            "milliseconds": 1000 * statistics.median(times),
            "peak_mebibytes": memory[name][length] / 2**20,
        }
        peer = f"KerasHub {name.removeprefix('Randomized')}"
        if name != peer and peer in seconds:
            row["speed_of_peer"] = compare_speeds(times, seconds[peer])
        rows.append(row)
        print(
            f"{length:6d}  {name:32s}{row['milliseconds']:10.2f} ms"
            f"{row['peak_mebibytes']:10.1f} MiB"
            + (
                f"{row['speed_of_peer']:8.2f} of {peer}'s speed"
                if "speed_of_peer" in row
                else ""
            ),
            flush=True,
        )
    return rows


def main(argv):
    """Measures all stages and lengths and writes the report."""
    del argv
    lengths = sorted(map(int, FLAGS.lengths))
    stages = {}
    for name in FLAGS.encodings:
        stage = make_layer(name).stage
        if stage:
            names = stages.setdefault(stage, [])
            names += [name, *([f"KerasHub {name}"] if name in PEERS else [])]
    memory = {}
    for name in itertools.chain(*stages.values()):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            memory[name] = pool.apply(
                measure_memory, (name, lengths, FLAGS.num_heads, FLAGS.key_dim)
            )
    rows = []
    for length in lengths:
        for stage, names in stages.items():
            rows += measure(stage, names, length, memory)
    content = {
        "keras_hub": keras_hub.__version__,
        "num_heads": FLAGS.num_heads,
        "key_dim": FLAGS.key_dim,
        "rows": rows,
    }
    write_report(FLAGS.output, "benchmarks.encoding_layers", content)


if __name__ == "__main__":
    app.run(main)
