"""Measures forward and backward passes of a causal attention layer."""

import functools
import time

import tensorflow as tf

from benchmarks.measure import PeakMemory


def measure_passes(attention, lengths, *, compile, rounds=1):
    """Measures passes with the gradients of the inputs and all weights.

    Args:
        attention: `MultiHeadAttention`.
        lengths: Ascending list of int, numbers of tokens.
        compile: bool, whether XLA compiles the passes.
        rounds: int, number of measurements, of which the fastest counts.

    Yields:
        Length, seconds and peak memory in bytes, without compilation. Memory
        is that of the process, so each layer needs its own.
    """
    width = attention.num_heads * attention.key_dim
    attention.build((1, None, width), (1, None, width))

    @tf.function(jit_compile=compile)
    def run(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = attention(inputs, inputs, use_causal_mask=True)
            loss = tf.reduce_mean(tf.square(outputs))
        weights = attention.trainable_variables
        gradients = tape.gradient(loss, [inputs, *weights])
        # One number that depends on all of them.
        return sum(tf.reduce_sum(gradient) for gradient in gradients)

    run(tf.zeros((1, 16, width)))
    peak = PeakMemory()
    for length in lengths:
        inputs = tf.random.stateless_normal((1, length, width), (0, 1))
        program = run.get_concrete_function(inputs)
        program(inputs).numpy()
        found = peak.measure_bytes(functools.partial(program, inputs))
        seconds = []
        for _ in range(rounds):
            start = time.perf_counter()
            program(inputs).numpy()
            seconds.append(time.perf_counter() - start)
        yield length, min(seconds), found
