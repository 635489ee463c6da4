"""Forward time and peak memory of every encoding layer over lengths.

The peer is the KerasHub layer of the same kind, where there is one. Every
variant does the whole of its stage: embeddings with the encoding added, query
and key rotated, or scores with the bias added.

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
    PeakMemory,
    command_line,
    interleaved,
    make_encoding,
    speed_ratio,
    write_report,
)
from keras_lengen.layers import ENCODINGS

FLAGS = flags.FLAGS
flags.DEFINE_list("lengths", ["256", "1024", "4096", "8192"], "Lengths.")
flags.DEFINE_list("encodings", list(ENCODINGS), "Encodings to measure.")
flags.DEFINE_integer("num_heads", 4, "Attention heads.")
flags.DEFINE_integer("key_dim", 64, "Width of a head.")
flags.DEFINE_integer("rounds", 5, "Turns of every layer.")
flags.DEFINE_string(
    "output", "benchmarks/results/encoding_layers.json", "The report."
)

MAX_POSITION = 2 * 8192
"""Range of the encodings that have one."""


def added(layer):
    """The stage of an absolute encoding that gives what is to be added."""
    return lambda embeddings: embeddings + layer(embeddings)


def rotated(layer):
    """The stage of a rotary layer that takes one tensor."""
    return lambda query, key: tf.concat([layer(query), layer(key)], axis=1)


PEERS = {
    "SinusoidalEncoding": lambda: added(
        keras_hub.layers.SinePositionEncoding()
    ),
    "LearnedEncoding": lambda: added(
        keras_hub.layers.PositionEmbedding(MAX_POSITION)
    ),
    "RoPE": lambda: rotated(keras_hub.layers.RotaryEmbedding()),
    "ALiBi": lambda: (
        lambda scores, query, key: keras_hub.layers.AlibiBias()(scores)
    ),
}
"""The KerasHub layer of the same kind, as a function of the same arguments."""


def stage_of(layer):
    """Our layer as a function of the arguments of its stage."""
    if layer.stage == "embeddings":
        return lambda embeddings: layer(embeddings)
    if layer.stage == "rotation":
        # As one tensor, so that both are computed.
        return lambda query, key: tf.concat(layer(query, key), axis=1)
    return lambda scores, query, key: scores + layer(query, key)


def inputs(stage, length, num_heads, key_dim):
    """Random arguments of a stage."""
    shape = (1, length, num_heads, key_dim)
    query = tf.random.stateless_normal(shape, (0, 1))
    key = tf.random.stateless_normal(shape, (0, 2))
    if stage == "embeddings":
        return [tf.reshape(query, (1, length, num_heads * key_dim))]
    if stage == "rotation":
        return [query, key]
    shape = (1, num_heads, length, length)
    return [tf.random.stateless_normal(shape, (0, 3)), query, key]


def variant(name):
    """The stage and the function of a layer, ours or a peer's."""
    ours = name.removeprefix("KerasHub ")
    layer = make_encoding(ours, MAX_POSITION)
    if name == ours:
        return layer.stage, tf.function(stage_of(layer))
    return layer.stage, tf.function(PEERS[ours]())


def peak_bytes(name, lengths, num_heads, key_dim):
    """Memory of a variant at growing lengths, without that of its inputs."""
    stage, function = variant(name)
    function(*inputs(stage, 16, num_heads, key_dim))
    peak, found = PeakMemory(), {}
    for length in lengths:
        arguments = inputs(stage, length, num_heads, key_dim)
        size = sum(argument.numpy().nbytes for argument in arguments)
        call = functools.partial(function, *arguments)
        found[length] = max(0, peak.bytes_of(call) - size)
    return found


def measure(stage, names, length, memory):
    """Rows of the table for one stage and length."""
    arguments = inputs(stage, length, FLAGS.num_heads, FLAGS.key_dim)
    seconds = interleaved(
        {
            name: functools.partial(variant(name)[1], *arguments)
            for name in names
        },
        rounds=FLAGS.rounds,
        repeats=max(1, 4096 // length),
    )
    rows = []
    for name, own in seconds.items():
        row = {
            "encoding": name,
            "stage": stage,
            "length": length,
            "milliseconds": 1000 * statistics.median(own),
            "peak_mebibytes": memory[name][length] / 2**20,
        }
        peer = f"KerasHub {name.removeprefix('Randomized')}"
        if name != peer and peer in seconds:
            row["speed_of_peer"] = speed_ratio(own, seconds[peer])
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
        stage = make_encoding(name, MAX_POSITION).stage
        if stage:
            names = stages.setdefault(stage, [])
            names += [name, *([f"KerasHub {name}"] if name in PEERS else [])]
    memory = {}
    for name in itertools.chain(*stages.values()):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            memory[name] = pool.apply(
                peak_bytes, (name, lengths, FLAGS.num_heads, FLAGS.key_dim)
            )
    rows = []
    for length in lengths:
        for stage, names in stages.items():
            rows += measure(stage, names, length, memory)
    command = command_line("benchmarks.encoding_layers")
    content = {
        "keras_hub": keras_hub.__version__,
        "num_heads": FLAGS.num_heads,
        "key_dim": FLAGS.key_dim,
        "rows": rows,
    }
    write_report(FLAGS.output, command, content)


if __name__ == "__main__":
    app.run(main)
