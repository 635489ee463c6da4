"""Padded lengths, so that a few programs serve sequences of all lengths."""

import numpy as np


def length_buckets(lengths, count):
    """At most `count` padded lengths that serve all of `lengths`.

    Each is one of the lengths, and they are chosen so that the pairs of
    tokens computed, a square per length, exceed those needed by as little as
    possible.

    >>> length_buckets([2, 4, 6, 8, 10, 12], 2)
    (6, 12)

    Args:
        lengths: Numbers of tokens, each as often as it will be computed.
        count: Largest number of padded lengths.

    Returns:
        Increasing padded lengths, the last one the largest length.
    """
    values, counts = np.unique(np.asarray(lengths), return_counts=True)
    if len(values) <= count:
        return tuple(int(value) for value in values)
    # cost[k, j]: least cost of the first j values with k buckets; the last
    # of them reaches from value i to value j - 1.
    total = np.concatenate([[0], np.cumsum(counts)])
    number = len(values)
    cost = np.full((count + 1, number + 1), np.inf)
    cost[0, 0] = 0
    start = np.zeros((count + 1, number + 1), int)
    for k in range(1, count + 1):
        for j in range(1, number + 1):
            price = (total[j] - total[:j]) * float(values[j - 1]) ** 2
            start[k, j] = np.argmin(cost[k - 1, :j] + price)
            cost[k, j] = np.min(cost[k - 1, :j] + price)
    buckets, j = [], number
    for k in range(count, 0, -1):
        buckets.append(int(values[j - 1]))
        j = start[k, j]
    return tuple(reversed(buckets))
