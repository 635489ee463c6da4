"""Needle in a haystack: the token after a key.

An example of length 13: the needles 17-3, 30-8, 16-8 and 21-0 in a haystack of
symbols below 16, and the query 16:

    inputs   4 17 3 9 30 8 16 8 21 0 11 3 16
    targets  8
"""

import dataclasses

import tensorflow as tf

from datasets.tasks.base import (
    draw_distinct,
    draw_symbols,
    larger,
    place_pairs,
    smaller,
)
from datasets.tasks.measured_floors import (
    MeasuredFloors,
    find_most_frequent,
)

NEEDLES = 4


@dataclasses.dataclass(frozen=True)
class Needle(MeasuredFloors):
    """The value that follows one of four keys in a haystack.

    The first `output_vocabulary_size` ids are symbols, the others keys. The
    haystack and the values of the needles are uniform symbols; the keys are
    distinct. All ways to place the needles, of a key and its value, are equally
    likely. The last token is one of the keys. Below 9 tokens there are fewer
    needles; the shortest input has 3 tokens.

    This is the task `niah_multikey_1` of RULER, of single tokens instead of
    text: one needle that is asked for and three others. RULER's haystack is of
    essays and its values are numbers of 7 digits; here the values also occur in
    the haystack, so that the answer cannot be recognised by its token. RULER
    trains nothing and tests from 4,096 to 131,072 tokens of text, by recall of
    the answer; `--test_lengths=4096,8192` has its shortest two.

    Theory: as for `mqar`, with a single query.

    Reference: Hsieh et al., 2024, section 3. https://arxiv.org/abs/2404.06654
    """

    input_vocabulary_size: int = 32
    output_vocabulary_size: int = 16
    level: str = "regular"
    random_accuracy: float = 1 / 16

    answers_in_place = True

    def __post_init__(self):
        least = self.output_vocabulary_size + NEEDLES
        if self.input_vocabulary_size < least:
            raise ValueError(
                f"Needle with {self.output_vocabulary_size} symbols and "
                f"{NEEDLES} keys needs an input_vocabulary_size of at least "
                f"{least}; got {self.input_vocabulary_size!r}."
            )

    def input_length(self, length):
        """The length, but at least 3."""
        return larger(length, 3)

    def draw(self, seed, batch_size, length):
        """Draws a haystack, and keys that precede some of its symbols."""
        key_seed, symbol_seed, query_seed, place_seed = tf.unstack(
            tf.random.split(seed, 4, alg="philox")
        )
        symbols = self.output_vocabulary_size
        needles = smaller((length - 1) // 2, NEEDLES)
        # A needle is one item; so is any other token of the haystack.
        items = length - 1 - needles
        order = draw_distinct(place_seed, batch_size, items, items)
        _, _, is_key = place_pairs(order, needles)
        # The number of a token's needle; that of a symbol is not used.
        number = tf.cumsum(tf.cast(is_key, tf.int32), axis=1) - 1
        number = tf.maximum(number, 0)
        keys = symbols + draw_distinct(
            key_seed,
            batch_size,
            needles,
            self.input_vocabulary_size - symbols,
        )
        haystack = draw_symbols(symbol_seed, batch_size, length - 1, symbols)
        listed = tf.gather(keys, number, batch_dims=1)
        haystack = tf.where(is_key, listed, haystack)
        asked = draw_symbols(query_seed, batch_size, 1, needles)
        query = tf.gather(keys, asked, batch_dims=1)
        place = tf.argmax(haystack == query, axis=1, output_type=tf.int32)
        place = place[:, tf.newaxis] + 1
        answer = tf.gather(haystack, place, batch_dims=1)
        return tf.concat([haystack, query], axis=1), answer

    def simple_rules(self, inputs):
        """The most frequent symbol."""
        return [find_most_frequent(inputs, range(self.output_vocabulary_size))]
