"""2-back: the symbol two places before.

An example of length 6:

    inputs   0 5 3 9 3 1
    targets  0 0 0 5 3 9
"""

import dataclasses

import numpy as np
import tensorflow as tf

from datasets.tasks.base import draw_symbols
from datasets.tasks.measured_floors import (
    MeasuredFloors,
    find_most_frequent,
)


@dataclasses.dataclass(frozen=True)
class TwoBack(MeasuredFloors):
    """For every token, the token two places before it, or 0 at the start.

    The input is a 0 and uniform symbols from 1 to 15. The published inputs have
    the 0 beside the symbols that their length counts; here the length counts
    it, too.

    The published lengths are `--train_length=32-64
    --test_lengths=64,128,256,512,1024,2048,4096`; the score is uncertain,
    accuracy or exact match.

    Theory: a causal Transformer needs one attention to a fixed distance, which
    the variant of C-RASP with local relations has (Huang et al., 2025,
    https://arxiv.org/abs/2410.02140), and generalises with positions. The empty
    token of an encoder must also find its own input token.

    Reference: Vasylenko et al., 2025. https://arxiv.org/abs/2506.16640, with
    its published `generate_data.py`.
    """

    input_vocabulary_size: int = 16
    output_vocabulary_size: int = 16
    level: str = "regular"
    random_accuracy: float = 1 / 16

    answers_in_place = True

    def output_length(self, length):
        """One output for each input token."""
        return length

    def draw(self, seed, batch_size, length):
        """Draws uniform symbols after a 0, and shifts them."""
        symbols = 1 + draw_symbols(
            seed, batch_size, length, self.input_vocabulary_size - 1
        )
        inputs = tf.where(tf.range(length) == 0, 0, symbols)
        return inputs, tf.pad(inputs, [[0, 0], [2, 0]])[:, :length]

    def simple_rules(self, inputs):
        """A 0, or the most frequent other symbol, everywhere."""
        symbols = range(1, self.input_vocabulary_size)
        return np.stack(
            [np.zeros(len(inputs), int), find_most_frequent(inputs, symbols)]
        )
