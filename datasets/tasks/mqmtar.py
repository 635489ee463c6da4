"""Multi-query multi-token associative recall: pairs of words of two symbols.

An example of length 15, whose pairs read 9 12 = 16 12 and 18 16 = 8 4, with
spaces (0) behind each of them, and whose four queries ask for the second word
and three times for the first one:

    inputs   9 12 1 16 12 0 0 0 18 16 1 8 4 0 0 2 18 16 2 9 12 2 9 12 2 9 12
    targets  5 1 13 9 13 9 13 9
"""

import dataclasses

import tensorflow as tf

from datasets.tasks.base import (
    check_vocabularies,
    draw_distinct,
    draw_symbols,
    larger,
    smaller,
)
from datasets.tasks.measured_floors import (
    MeasuredFloors,
    find_most_frequent,
)

EQUALS, QUERY, FIRST_SYMBOL = 1, 2, 3
WIDTH = 6
"""Tokens of a pair with the space behind it."""
QUERIES = 4


@dataclasses.dataclass(frozen=True)
class MQMTAR(MeasuredFloors):
    """The words that belong to four other words (MQMTAR).

    Tokens are the space 0, 1 between a word and its value, 2 before a query,
    and symbols from 3 on. Words and values are two symbols each, and distinct
    in a problem. The length counts the pairs and spaces; 12 tokens of queries
    follow. Target ids count from the first symbol.

    As published, pairs take 0.8 of the length, so there is one for every 7.5
    tokens, and each has an equal share of the length with spaces around it; all
    pairs have a space behind them. The number of pairs is at most that of
    words, and at least one; the shortest length is 6. Each query is any of the
    pairs.

    Differs from the published `generate_data.py`: the number of spaces before a
    pair is uniform; words are any two symbols instead of 10,000 words drawn
    once; and outputs are the 8 symbols of the values without the separators.
    The published alphabet has 256 symbols, in Python
    `MQMTAR(input_vocabulary_size=259, output_vocabulary_size=256)`. Published
    lengths are `--train_length=32-64
    --test_lengths=64,128,256,512,1024,2048,4096,8192,16384,32768,65536`, and
    the score is `exact_match`, as far as its code shows.

    With a finite alphabet the task is regular, with a state for every set of
    pairs.

    Theory: as for `mqar`; a word must be compared as two symbols together.

    Reference: Vasylenko et al., 2025. https://arxiv.org/abs/2506.16640
    """

    input_vocabulary_size: int = 19
    output_vocabulary_size: int = 16
    level: str = "regular"
    random_accuracy: float = 1 / 16

    def __post_init__(self):
        check_vocabularies(self, FIRST_SYMBOL + self.output_vocabulary_size)

    def input_length(self, length):
        """The length, but at least 6, and the tokens of the queries."""
        return larger(length, WIDTH) + 3 * QUERIES

    def output_length(self, length):
        """Two symbols for each query."""
        del length
        return 2 * QUERIES

    def draw(self, seed, batch_size, length):
        """Draws pairs, the spaces around them and the queries."""
        key_seed, value_seed, space_seed, query_seed = tf.unstack(
            tf.random.split(seed, 4, alg="philox")
        )
        length = length - 3 * QUERIES
        words = self.output_vocabulary_size**2
        pairs = smaller(larger(4 * length // (5 * WIDTH), 1), words)
        share = length // pairs

        def draw_words(word_seed):
            number = draw_distinct(word_seed, batch_size, pairs, words)
            symbols = self.output_vocabulary_size
            return tf.stack([number // symbols, number % symbols], axis=2)

        keys, values = draw_words(key_seed), draw_words(value_seed)
        edges = tf.zeros((batch_size, pairs, 1), tf.int32)
        listed = tf.concat(
            [
                FIRST_SYMBOL + keys,
                edges + EQUALS,
                FIRST_SYMBOL + values,
                edges,
            ],
            axis=2,
        )
        spaces = draw_symbols(space_seed, batch_size, pairs, share - WIDTH + 1)
        # Columns outside a pair show the space at its end.
        column = tf.range(share) - spaces[:, :, tf.newaxis]
        outside = (column < 0) | (column >= WIDTH)
        listed = tf.gather(
            listed,
            tf.where(outside, WIDTH - 1, column),
            axis=2,
            batch_dims=2,
        )
        listed = tf.reshape(listed, (batch_size, pairs * share))
        listed = tf.pad(listed, [[0, 0], [0, length - pairs * share]])

        asked = draw_symbols(query_seed, batch_size, QUERIES, pairs)
        query = tf.gather(keys, asked, axis=1, batch_dims=1)
        query = tf.pad(
            FIRST_SYMBOL + query,
            [[0, 0], [0, 0], [1, 0]],
            constant_values=QUERY,
        )
        query = tf.reshape(query, (batch_size, 3 * QUERIES))
        answer = tf.gather(values, asked, axis=1, batch_dims=1)
        answer = tf.reshape(answer, (batch_size, 2 * QUERIES))
        return tf.concat([listed, query], axis=1), answer

    def simple_rules(self, inputs):
        """The most frequent symbol."""
        symbols = range(self.output_vocabulary_size)
        return [find_most_frequent(inputs - FIRST_SYMBOL, symbols)]
