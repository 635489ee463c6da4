"""Flip-flop language: which bit was written last?

An example of length 10: 1 is written (2), a 0 is ignored (3), 1 is read (4),
0 is written, and the memory is read again:

    inputs   2 1 3 0 4 1 2 0 4
    targets  0
"""

import dataclasses

import numpy as np
import tensorflow as tf

from datasets.tasks.base import draw_symbols, larger
from datasets.tasks.measured_floors import MeasuredFloors

WRITE, IGNORE, READ = 2, 3, 4


@dataclasses.dataclass(frozen=True)
class FlipFlop(MeasuredFloors):
    """The bit that the last instruction of a flip-flop string reads.

    Tokens are the bits and the instructions 2 (write), 3 (ignore) and 4 (read),
    each followed by a bit. The bit after a read is the one that was written
    last; other bits are uniform. The first instruction writes and the last one
    reads. Each other instruction is ignored with probability `ignored`, and
    writes and reads are equally likely.

    The length counts the bit of the answer, so it is even: an odd length gives
    the problems of the length below it, and the shortest length is 4.

    The paper trains with `ignored=0.8` on 512 tokens, and tests with 0.8, with
    0.98 and with 0.1: `--train_length=512 --test_lengths=512,1024` with this
    task, and `FlipFlop(ignored=0.98)` for its hardest test. These numbers and
    the length of the test beyond training are cited from memory. Liu et al.
    score every read, this task the last one. `--train_length=32-64
    --test_lengths=64,128,256,512,1024,2048,4096` has the lengths of Vasylenko
    et al., 2025, https://arxiv.org/abs/2506.16640, whose strings have a single
    read and a share 0.2 of ignored bits.

    Theory: a finite automaton of two states solves it, and attention to the
    last write, but this attention needs larger and larger scores as strings
    grow: C-RASP, which counts, cannot find the last of many writes in general.

    Reference: Liu et al., 2023, section 3. https://arxiv.org/abs/2306.00946
    """

    input_vocabulary_size: int = 5
    output_vocabulary_size: int = 2
    level: str = "regular"
    random_accuracy: float = 0.5
    ignored: float = 0.8

    answers_in_place = True

    def input_length(self, length):
        """One less than the length, or two less if it is odd; at least 3."""
        return larger(length - 1 - length % 2, 3)

    def draw(self, seed, batch_size, length):
        """Draws instructions and one bit for every write."""
        count = length // 2
        instruction_seed, written_seed, bit_seed = tf.unstack(
            tf.random.split(seed, 3, alg="philox")
        )
        uniform = tf.random.stateless_uniform(
            (batch_size, count), instruction_seed, alg="philox"
        )
        active = tf.where(uniform < (1 + self.ignored) / 2, WRITE, READ)
        instructions = tf.where(uniform < self.ignored, IGNORE, active)
        instructions = tf.where(tf.range(count) == 0, WRITE, instructions)
        # The bit of a write is the one with its number, so the memory needs no
        # search for the last write.
        writes = tf.cumsum(tf.cast(instructions == WRITE, tf.int32), axis=1)
        written = draw_symbols(written_seed, batch_size, count, 2)
        memory = tf.gather(written, writes - 1, axis=1, batch_dims=1)
        ignored = draw_symbols(bit_seed, batch_size, count, 2)
        bits = tf.where(instructions == IGNORE, ignored, memory)
        pairs = tf.stack([instructions, bits], axis=2)
        pairs = tf.reshape(pairs, (batch_size, 2 * count))
        inputs = tf.pad(pairs, [[0, 0], [0, 1]], constant_values=READ)
        return inputs, memory[:, -1:]

    def simple_rules(self, inputs):
        """The more frequent bit."""
        return [np.sum(inputs == 1, axis=1) >= np.sum(inputs == 0, axis=1)]
