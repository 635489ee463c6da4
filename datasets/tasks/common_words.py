"""Common words: the three words that occur more often than all others.

An example of length 10, in which 9, 40 and 301 occur twice:

    inputs   40 9 7 301 40 88 9 301 512 3
    targets  9 40 301
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
    smaller,
)

COMMON = 3


@dataclasses.dataclass(frozen=True)
class CommonWords(Task):
    """The three common words of a list, in ascending order.

    All words are uniform and distinct, and their places are uniform. Common
    words occur 6 times each and others once. In lists that are longer than the
    vocabulary allows, others occur up to k times and common words `6 * k`
    times. Below 36 tokens, common words are half of the list and occur at least
    twice. The shortest length is 7.

    This is the task `cwe` of RULER with its frequencies for short lists, 6 and
    1, of single tokens instead of words, and with 3 common words instead of 10.
    RULER takes the answers in any order and scores recall. It trains nothing
    and tests from 4,096 tokens on, with frequencies 30 and 3.

    The answer does not depend on the order of the words, so the best simple
    rule is one of the most frequent words, at every output.

    Theory: comparing counts is what C-RASP does; sorting the common words is
    our reading of it, for a fixed vocabulary.

    Reference: Hsieh et al., 2024, section 3. https://arxiv.org/abs/2404.06654
    """

    input_vocabulary_size: int = 1000
    output_vocabulary_size: int = 1000
    level: str = "context_sensitive"
    random_accuracy: float = 1 / 1000

    def __post_init__(self):
        check_vocabularies(self, self.output_vocabulary_size, least=COMMON + 1)

    def input_length(self, length):
        """The length, but at least 7."""
        return larger(length, 7)

    def output_length(self, length):
        """Three words."""
        del length
        return COMMON

    def draw(self, seed, batch_size, length):
        """Draws words of which the first are common, and their places."""
        word_seed, place_seed = tf.unstack(
            tf.random.split(seed, 2, alg="philox")
        )
        words = self.input_vocabulary_size
        rest = words - COMMON
        most = (length + rest - 1) // rest
        times = smaller(larger(length // 6, most + 1), 6 * most)
        word = draw_distinct(word_seed, batch_size, words, words)
        place = tf.range(length)
        repeated = COMMON * times
        number = tf.where(
            place < repeated,
            place % COMMON,
            COMMON + (place - repeated) % rest,
        )
        order = draw_distinct(place_seed, batch_size, length, length)
        inputs = tf.gather(word, tf.gather(number, order), batch_dims=1)
        return inputs, tf.sort(word[:, :COMMON], axis=1)

    def floor_accuracy(self, length):
        """Accuracy of one of the common words, at every output."""
        del length
        return 1 / COMMON

    def position_only_accuracy(self, length):
        """Accuracy of the most likely word at each output."""
        del length
        words = self.output_vocabulary_size
        likely = [
            max(
                math.comb(word, place)
                * math.comb(words - 1 - word, COMMON - 1 - place)
                for word in range(words)
            )
            for place in range(COMMON)
        ]
        return float(np.mean(likely) / math.comb(words, COMMON))
