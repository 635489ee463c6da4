"""Choice of padded lengths, so that few programs serve all lengths."""

import numpy as np


def length_buckets(lengths, count):
    """Chooses at most `count` padded lengths for sequences of `lengths`.

    A sequence is padded to the smallest padded length that is not below its
    own length. The choice minimizes the total number of pairs of tokens, which
    is the sum of the squared padded lengths. Each padded length is one of
    `lengths`.

    >>> length_buckets([2, 4, 6, 8, 10, 12], 2)
    (6, 12)

    Args:
        lengths: Non-empty list of int. Numbers of tokens; a length that occurs
            several times counts several times.
        count: int, at least 1. Largest number of padded lengths.

    Returns:
        Tuple of increasing ints; the last one is the largest of `lengths`.
    """
    values, counts = np.unique(np.asarray(lengths), return_counts=True)
    if len(values) <= count:
        return tuple(int(value) for value in values)
    # cost[k, j] is the least cost of the first j values with k buckets, and
    # start[k, j] is the index of the first value in the last of these buckets.
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
