"""Accuracy of the best simple rules of some tasks, on any backend.

A rule is named after what it knows and what it answers.
"""

import math

import numpy as np


def more_frequent_bit(length):
    """Accuracy of the more frequent of uniform bits, at every position.

    Args:
        length: int, at least 1. Number of bits.
    """
    ones = np.arange(length + 1)
    share = np.maximum(ones, length - ones) / length
    return float(compute_binomial_probabilities(length, 0.5) @ share)


def whether_ends_differ(length):
    """Accuracy of the more likely answer, given the number of ones.

    If one symbol is rare, both ends probably have the other symbol.

    Args:
        length: int, at least 1. Number of uniform bits.
    """
    if length == 1:
        return 1.0
    ones = np.arange(length + 1)
    zeros = length - ones
    ends_agree = ones * (ones - 1) + zeros * (zeros - 1)
    ends_agree = ends_agree / (length * (length - 1))
    best = np.maximum(ends_agree, 1 - ends_agree)
    return float(compute_binomial_probabilities(length, 0.5) @ best)


def hidden_bit_by_threshold(length):
    """Accuracy of whether the visible ones reach the best threshold.

    With K ones among the other bits of the string, 2 K or 2 K + 1 ones are
    visible. A threshold of 2 k + 1 gives both answers correctly if K = k,
    and exactly one of the two for any other K.

    Args:
        length: int, at least 1. Length of a string and its copy.
    """
    if length == 1:
        return 1.0
    other_bits = length // 2 - 1
    return float(
        0.5 + compute_binomial_probabilities(other_bits, 0.5).max() / 2
    )


def one_uniform_bit(length):
    """Accuracy of a constant for a bit that is uniform beyond length 1."""
    return 1.0 if length == 1 else 0.5


def most_frequent_symbol(length):
    """Accuracy of the most frequent of five uniform symbols.

    Args:
        length: int, at least 1. Number of symbols.
    """
    return compute_expected_maximum(length) / length


def likely_sorted_symbol(length):
    """Accuracy of the most likely symbol at each position, after sorting.

    Args:
        length: int, at least 1. Number of symbols, of five uniform ones.
    """
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


def compute_binomial_probabilities(trials, probability):
    """Computes the probabilities of 0, 1, ..., `trials` successes.

    Args:
        trials: int, at least 0. Number of independent trials.
        probability: float in `(0, 1)`. Probability of success in each trial.

    Returns:
        float64 array `(trials + 1,)`.
    """
    successes = np.arange(trials + 1)
    log_factorial = np.array([math.lgamma(k + 1) for k in successes])
    return np.exp(
        log_factorial[-1]
        - log_factorial
        - log_factorial[::-1]
        + successes * math.log(probability)
        + successes[::-1] * math.log1p(-probability)
    )
