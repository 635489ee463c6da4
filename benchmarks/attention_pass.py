"""Measures forward and backward passes of a causal attention layer."""

import functools
import time

import tensorflow as tf

from benchmarks.measure import PeakMemory


def make_pass(attention, *, compile, encoding=None):
    """Makes a function of inputs (1, T, M) that computes a whole pass.

    Args:
        attention: `MultiHeadAttention`, ours or Keras'.
        compile: bool, whether XLA compiles the pass.
        encoding: `AbsoluteEncoding` to add to the inputs; None: nothing.

    Returns:
        A `tf.function`. Its result, a scalar, depends on the gradients of the
        inputs and all weights.
    """
    width = attention.num_heads * attention.key_dim
    attention.build((1, None, width), (1, None, width))
    layers = [attention]
    if encoding:
        encoding.build((1, None, width))
        layers.append(encoding)

    @tf.function(jit_compile=compile)
    def run(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            x = encoding(inputs) if encoding else inputs
            outputs = attention(x, x, use_causal_mask=True)
            loss = tf.reduce_mean(tf.square(outputs))
        weights = [
            weight for layer in layers for weight in layer.trainable_variables
        ]
        gradients = tape.gradient(loss, [inputs, *weights])
        return sum(tf.reduce_sum(gradient) for gradient in gradients)

    return run


def make_inputs(attention, length):
    """Makes random inputs (1, T, M) of a layer."""
    width = attention.num_heads * attention.key_dim
    return tf.random.stateless_normal((1, length, width), (0, 1))


def measure_passes(attention, run, lengths, *, rounds=1):
    """Measures passes with the gradients of the inputs and all weights.

    Args:
        attention: `MultiHeadAttention`, ours or Keras'.
        run: Its function, which `make_pass` returned.
        lengths: Ascending list of int, numbers of tokens.
        rounds: int, number of measurements, of which the fastest counts.

    Yields:
        Length, seconds and peak memory in bytes, without compilation. Memory
        is that of the process, so each layer needs its own.
    """
    run(make_inputs(attention, 16))
    peak = PeakMemory()
    for length in lengths:
        inputs = make_inputs(attention, length)
        program = run.get_concrete_function(inputs)
        program(inputs).numpy()
        found = peak.measure_bytes(functools.partial(program, inputs))
        seconds = []
        for _ in range(rounds):
            start = time.perf_counter()
            program(inputs).numpy()
            seconds.append(time.perf_counter() - start)
        yield length, min(seconds), found
