"""Unique sort: distinct symbols in ascending order.

An example of length 4:

    inputs   17 3 149 80
    targets  3 17 80 149
"""

import dataclasses
import math

import numpy as np
import tensorflow as tf

from datasets.tasks.base import RearrangedSymbols


@dataclasses.dataclass(frozen=True)
class UniqueSort(RearrangedSymbols):
    """Distinct symbols in ascending order.

    Symbols are drawn without replacement, and beyond the size of the
    vocabulary as for `unique_copy`. `bucket_sort` sorts five symbols with
    repetitions.

    Lengths, budgets and score are those of `binary_majority`.

    Theory: a program of C-RASP solves it, so causal Transformers are predicted
    to generalise. Published exact match at lengths 51 to 100 and 101 to 150:
    1.00 and 0.99 with a table of positions, 1.00 and 0.81 without positions.

    Reference: Huang et al., 2025, section 5.
    https://arxiv.org/abs/2410.02140
    """

    input_vocabulary_size: int = 150
    output_vocabulary_size: int = 150
    level: str = "context_sensitive"
    random_accuracy: float = 1 / 150

    def rearrange(self, symbols):
        """Returns the symbols in ascending order."""
        return tf.sort(symbols, axis=1)

    def position_only_accuracy(self, length):
        """Accuracy of the most likely symbol at each position."""
        size = self.input_vocabulary_size
        whole, drawn = divmod(length, size)
        place = np.arange(length)
        # The symbol at position p is <= s if more than p symbols are <= s, of
        # which `whole * (s + 1)` are certain.
        at_most = np.zeros((size + 1, length))
        for count in range(1, size + 1):
            more = np.cumsum(_count_drawn(size, count, drawn)[::-1])[::-1]
            missing = np.clip(place + 1 - whole * count, 0, drawn + 1)
            at_most[count] = np.append(more, 0.0)[missing]
        return float(np.diff(at_most, axis=0).max(axis=0).mean())


def _count_drawn(size, count, drawn):
    """Computes how many of `count` symbols are among `drawn` of `size`.

    Returns:
        float64 array `(drawn + 1,)`, the probabilities of 0, 1, ..., `drawn`.
    """
    ways = [
        math.comb(count, found) * math.comb(size - count, drawn - found)
        for found in range(drawn + 1)
    ]
    return np.array([way / math.comb(size, drawn) for way in ways])
