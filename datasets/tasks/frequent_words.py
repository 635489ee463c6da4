"""Frequent words: the three most frequent words of a Zipf-like text.

An example of length 12, in which word 65 occurs four times, 32 twice and 49
once, and 0 is noise:

    inputs   65 49 32 0 0 65 0 0 65 32 65 0
    targets  64 31 48
"""

import dataclasses
import math

import numpy as np
import tensorflow as tf

from datasets.tasks.base import (
    Task,
    check_vocabularies,
    draw_distinct,
    larger,
)

ANSWERS = 3


@dataclasses.dataclass(frozen=True)
class FrequentWords(Task):
    """The three most frequent words, the most frequent one first.

    Frequencies follow the zeta distribution with exponent 2: of n tokens, the
    word of rank r gets `n * 6 / (pi * r)**2`, rounded down, and the words of
    ranks 2, 3 and 4 get 3, 2 and 1 more, so that no two of them tie. The word
    of rank 1 is noise and is token 0; it also gets what is left. Words of other
    ranks are uniform and distinct, and their places are uniform. The shortest
    length is 10. Target ids are those of the words less 1.

    This is the task `fwe` of RULER with the published exponent and three
    answers, of single tokens instead of invented words. RULER adds nothing to
    the counts, takes the answers in any order, has a vocabulary of one word for
    50 tokens, and scores recall; it trains nothing and tests from 4,096 tokens
    on.

    Which words are frequent does not depend on their places, so the best simple
    rule is the most frequent word at every output.

    Theory: comparing counts is what C-RASP does; finding the third largest of
    many is our reading of it, for a fixed vocabulary.

    Reference: Hsieh et al., 2024, section 3. https://arxiv.org/abs/2404.06654
    """

    input_vocabulary_size: int = 129
    output_vocabulary_size: int = 128
    level: str = "context_sensitive"
    random_accuracy: float = 1 / 128

    def __post_init__(self):
        check_vocabularies(self, 1 + self.output_vocabulary_size, least=ANSWERS)

    def input_length(self, length):
        """The length, but at least 10."""
        return larger(length, 10)

    def output_length(self, length):
        """Three words."""
        del length
        return ANSWERS

    def draw(self, seed, batch_size, length):
        """Draws the word of every rank, and the places of all tokens."""
        word_seed, place_seed = tf.unstack(
            tf.random.split(seed, 2, alg="philox")
        )
        words = self.output_vocabulary_size
        word = draw_distinct(word_seed, batch_size, words, words)
        rank = 2 + np.arange(words)
        share = tf.constant(6 / (math.pi * rank) ** 2, tf.float64)
        counts = tf.cast(tf.cast(length, tf.float64) * share, tf.int32)
        counts += tf.constant(np.maximum(5 - rank, 0), tf.int32)
        # Tokens in order of rank, then the noise.
        number = tf.searchsorted(tf.cumsum(counts), tf.range(length), "right")
        tokens = tf.gather(tf.pad(1 + word, [[0, 0], [0, 1]]), number, axis=1)
        order = draw_distinct(place_seed, batch_size, length, length)
        return tf.gather(tokens, order, axis=1, batch_dims=1), word[:, :ANSWERS]

    def floor_accuracy(self, length):
        """Accuracy of the most frequent word, at every output."""
        del length
        return 1 / ANSWERS

    def position_only_accuracy(self, length):
        """Accuracy of any constant: words are uniform."""
        del length
        return 1 / self.output_vocabulary_size
