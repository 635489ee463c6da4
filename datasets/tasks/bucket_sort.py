"""Bucket sort: the input in ascending order.

An example of length 6:

    inputs   4 0 2 0 3 2
    targets  0 0 2 2 3 4
"""

import dataclasses
import math

import numpy as np
import tensorflow as tf

from datasets.tasks.base import (
    Task,
    compute_binomial_probabilities,
    draw_symbols,
)


@dataclasses.dataclass(frozen=True)
class BucketSort(Task):
    """Uniform symbols 0 to 4 in ascending order.

    The answer depends only on how often each symbol occurs in the input, so a
    model needs no input positions, but it does need output positions. In a
    long string, the symbol at an output position hardly varies between
    inputs, so `position_only_accuracy` approaches 1.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 5
    output_vocabulary_size: int = 5
    level: str = "context_sensitive"
    random_accuracy: float = 0.2

    def output_length(self, length):
        """One output for each input token."""
        return length

    def draw(self, seed, batch_size, length):
        """Draws independent uniform symbols."""
        symbols = draw_symbols(seed, batch_size, length, 5)
        return symbols, tf.sort(symbols, axis=1)

    def floor_accuracy(self, length):
        """Accuracy of the most frequent input symbol at every position."""
        return compute_expected_maximum(length) / length

    def position_only_accuracy(self, length):
        """Accuracy of the most likely symbol at each position."""
        # The symbol at position p is <= s if more than p symbols are <= s.
        at_most = np.ones((6, length))
        at_most[0] = 0
        for symbol in range(4):
            counts = compute_binomial_probabilities(length, (symbol + 1) / 5)
            at_most[symbol + 1] = np.cumsum(counts[::-1])[::-1][1:]
        return float(np.diff(at_most, axis=0).max(axis=0).mean())


def compute_expected_maximum(length):
    """Computes the expected count of the most frequent of five symbols.

    The counts of five symbols in a string are distributed like five
    independent Poisson counts, given their sum. Therefore P(no count above c)
    is a quotient of two coefficients of `x**length`: in the fifth power of the
    Poisson generating function truncated after `x**c`, and in that of the
    full generating function.

    Args:
        length: int, at least 1. Number of symbols in the string.

    Returns:
        float.
    """
    counts = np.arange(length + 1)
    log_factorial = np.array([math.lgamma(k + 1) for k in counts])
    poisson = np.exp(counts * math.log(length / 5) - length / 5 - log_factorial)
    sum_is_length = math.exp(
        length * math.log(length) - length - log_factorial[-1]
    )
    # The most frequent symbol occurs at least length / 5 times.
    maximum = math.ceil(length / 5)
    expectation = maximum
    while maximum < length:
        one = poisson[: maximum + 1]
        two = np.convolve(one, one)
        five = np.convolve(np.convolve(two, one), two)[length]
        above = 1 - five / sum_is_length
        if above < 1e-12:
            break
        expectation += above
        maximum += 1
    return float(expectation)
