"""Compares generation with a cache and with a pass over the prefix per token.

Both generate greedily from the same prompts with the same weights;
`same_tokens` is the fraction of equal tokens. The pass of the peer is compiled
once for all lengths, without XLA, and computes only the prefix.

    python -m benchmarks.generation
"""

import functools
import statistics
import time

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks.measure import DEFINE_count, make_encoding, write_report
from keras_lengen.models import TransformerDecoder, presets

FLAGS = flags.FLAGS
flags.DEFINE_list(
    "encodings", ["RoPE", "ALiBi", "RelativeEncoding", "T5Bias"], "Encodings."
)
flags.DEFINE_list("batch_sizes", ["1", "8"], "Numbers of prompts at a time.")
DEFINE_count("prompt_tokens", 16, "Number of tokens of a prompt.")
DEFINE_count("new_tokens", 512, "Number of tokens to generate.")
DEFINE_count("rounds", 3, "Number of turns of each variant.")
flags.DEFINE_string(
    "output", "benchmarks/results/generation.json", "File for the report."
)


def generate_without_cache(forward, prompts, new_tokens):
    """Generates tokens, each by a pass over all tokens before it."""
    tokens = prompts
    for _ in range(new_tokens):
        following = tf.argmax(forward(tokens), axis=-1, output_type=tf.int32)
        tokens = tf.concat([tokens, following[:, None]], axis=1)
    return tokens[:, prompts.shape[1] :].numpy()


def measure(name, batch_size):
    """Measures one encoding; returns a row of the table."""
    model = TransformerDecoder(
        encoding=make_encoding(name, 4096), **presets["enwik8"]
    )

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)])
    def forward(tokens):
        return model(tokens)[:, -1]

    prompts = np.random.default_rng(0).integers(
        256, size=(batch_size, FLAGS.prompt_tokens), dtype="int32"
    )
    ways = {
        "cached": functools.partial(model.generate, prompts, FLAGS.new_tokens),
        "recomputed": functools.partial(
            generate_without_cache,
            forward,
            tf.constant(prompts),
            FLAGS.new_tokens,
        ),
    }
    start = time.perf_counter()
    tokens = ways["cached"]()
    first = time.perf_counter() - start
    forward(tf.constant(prompts))
    seconds = {way: [] for way in ways}
    for _ in range(FLAGS.rounds):
        for way, function in ways.items():
            start = time.perf_counter()
            found = function()
            seconds[way].append(time.perf_counter() - start)
            # Rounding decides the near ties of an untrained model.
            same = float(np.mean(found == tokens))
    row = {
        "encoding": name,
        "batch_size": batch_size,
        "seconds_first": first,
        "same_tokens": same,
        **{way: statistics.median(times) for way, times in seconds.items()},
        "speed_of_recomputing": statistics.median(
            slow / fast for fast, slow in zip(*seconds.values(), strict=True)
        ),
    }
    print(
        f"{name:24s}{batch_size:4d} prompts  cached {row['cached']:7.2f} s"
        f" (first time {first:.1f} s)  recomputed {row['recomputed']:7.2f} s"
        f"  {row['speed_of_recomputing']:6.1f} times as fast",
        flush=True,
    )
    return row


def main(argv):
    """Measures all encodings and batch sizes and writes the report."""
    del argv
    keras.utils.set_random_seed(0)
    rows = [
        measure(name, int(batch_size))
        for name in FLAGS.encodings
        for batch_size in FLAGS.batch_sizes
    ]
    content = {
        "preset": "enwik8",
        "prompt_tokens": FLAGS.prompt_tokens,
        "new_tokens": FLAGS.new_tokens,
        "rows": rows,
    }
    write_report(FLAGS.output, "benchmarks.generation", content)


if __name__ == "__main__":
    app.run(main)
