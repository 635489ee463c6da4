"""Indirect indexing: the token at some distance from a key.

An example of length 11, in which tokens from 16 to 31 are keys, 32 to 35 mean 4
to 1 tokens before, and 36 to 39 mean 1 to 4 tokens behind. Two tokens behind
the key 30 is 8:

    inputs   4 17 3 30 5 8 16 21 11 30 37
    targets  8
"""

import dataclasses

import tensorflow as tf

from datasets.tasks.base import (
    draw_distinct,
    draw_symbols,
    larger,
    smaller,
)
from datasets.tasks.measured_floors import (
    MeasuredFloors,
    find_most_frequent,
)

KEYS = 4


@dataclasses.dataclass(frozen=True)
class IndirectIndexing(MeasuredFloors):
    """The token a few places before or behind one of four keys.

    The first half of the output vocabulary are symbols, the other half keys;
    the other input tokens are distances, as many before a key as behind it. The
    input is a text of uniform symbols and of distinct keys at uniform places,
    then one of these keys, then a distance. Each of the keys is equally likely,
    and each distance that stays within the text. Texts of fewer than 8 tokens
    have fewer keys; the shortest input has 4 tokens.

    The key has to be found by its content, whatever its place, and the answer
    by its place, whatever its content.

    The paper describes such a task of a source symbol and a distance; its
    alphabet and lengths are not known to us, so these are our own. Its figures
    at the trained length: 0.11 of the answers with `RoPE`, 0.95 with `PoPE`.

    Theory: as for `mqar`, with a fixed set of distances.

    Reference: Gopalakrishnan et al., 2025. https://arxiv.org/abs/2509.10534
    """

    input_vocabulary_size: int = 40
    output_vocabulary_size: int = 32
    level: str = "regular"
    random_accuracy: float = 1 / 32

    answers_in_place = True

    def input_length(self, length):
        """The length, but at least 4."""
        return larger(length, 4)

    def draw(self, seed, batch_size, length):
        """Draws a text, the places of its keys, and a distance."""
        place_seed, key_seed, symbol_seed, distance_seed = tf.unstack(
            tf.random.split(seed, 4, alg="philox")
        )
        size, symbols = length - 2, self.output_vocabulary_size // 2
        names = self.output_vocabulary_size - symbols
        reach = (self.input_vocabulary_size - self.output_vocabulary_size) // 2
        count = smaller(size // 2, min(KEYS, names))
        # Places in a random order; the keys have the first ones.
        order = draw_distinct(place_seed, batch_size, size, size)
        keys = symbols + draw_distinct(key_seed, batch_size, count, names)
        text = tf.where(
            order < count,
            tf.gather(keys, tf.minimum(order, count - 1), batch_dims=1),
            draw_symbols(symbol_seed, batch_size, size, symbols),
        )
        place = tf.argmin(order, axis=1, output_type=tf.int32)[:, tf.newaxis]
        before = tf.minimum(place, reach)
        behind = tf.minimum(size - 1 - place, reach)
        uniform = tf.random.stateless_uniform(
            (batch_size, 1), distance_seed, alg="philox"
        )
        number = tf.cast(
            uniform * tf.cast(before + behind, tf.float32), tf.int32
        )
        # Numbered without a distance of 0.
        distance = number - before
        word = self.output_vocabulary_size + reach + distance
        distance += tf.cast(distance >= 0, tf.int32)
        answer = tf.gather(text, place + distance, batch_dims=1)
        return tf.concat([text, keys[:, :1], word], axis=1), answer

    def simple_rules(self, inputs):
        """The most frequent symbol."""
        symbols = range(self.output_vocabulary_size // 2)
        return [find_most_frequent(inputs[:, :-2], symbols)]
