"""Local count: how often has this symbol just been repeated?

An example of length 8:

    inputs   7 7 7 2 2 7 7 7
    targets  0 1 2 0 1 0 1 2
"""

import dataclasses

import numpy as np
import tensorflow as tf

from datasets.tasks.base import draw_symbols
from datasets.tasks.measured_floors import MeasuredFloors


@dataclasses.dataclass(frozen=True)
class LocalCount(MeasuredFloors):
    """For every token, the number of equal tokens directly before it.

    The input consists of runs of one symbol. The length of a run is uniform
    from 2 to `output_vocabulary_size`, but the last run is cut at the end of
    the input. Symbols of adjacent runs differ, and each other symbol is equally
    likely. A published input has a fixed number of whole runs instead, so its
    length varies.

    The published lengths are `--train_length=64-128
    --test_lengths=64,128,256,512,1024,2048,4096`, of which the tested ones and
    the score are uncertain. 16 symbols and runs up to 48 are published.

    Theory: no claim about C-RASP is known to us. The number of equal tokens in
    a window of 48 is regular, and its automaton has a state for every symbol
    and count.

    Reference: Vasylenko et al., 2025. https://arxiv.org/abs/2506.16640, with
    its published `generate_data.py`.
    """

    input_vocabulary_size: int = 16
    output_vocabulary_size: int = 48
    level: str = "regular"
    random_accuracy: float = 1 / 48

    answers_in_place = True

    def output_length(self, length):
        """One output for each input token."""
        return length

    def draw(self, seed, batch_size, length):
        """Draws enough runs to fill the input."""
        run_seed, symbol_seed = tf.unstack(
            tf.random.split(seed, 2, alg="philox")
        )
        # The shortest runs have two tokens.
        count = (length + 1) // 2
        runs = 2 + draw_symbols(
            run_seed, batch_size, count, self.output_vocabulary_size - 1
        )
        ends = tf.cumsum(runs, axis=1)
        place = tf.range(length) + tf.zeros((batch_size, 1), tf.int32)
        run = tf.searchsorted(ends, place, side="right")
        start = tf.gather(ends - runs, run, axis=1, batch_dims=1)
        # Steps other than 0 from symbol to symbol make neighbours differ.
        symbols = self.input_vocabulary_size
        steps = draw_symbols(
            symbol_seed, batch_size, count, symbols * (symbols - 1)
        )
        first = tf.range(count) == 0
        steps = tf.where(first, steps % symbols, 1 + steps % (symbols - 1))
        symbol = tf.cumsum(steps, axis=1) % symbols
        inputs = tf.gather(symbol, run, axis=1, batch_dims=1)
        return inputs, place - start

    def simple_rules(self, inputs):
        """Constants."""
        counts = np.arange(self.output_vocabulary_size)[:, np.newaxis]
        return np.broadcast_to(counts, (len(counts), len(inputs)))
