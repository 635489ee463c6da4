"""Multi-query associative recall: the values of some keys.

An example of length 11: the pairs 5-33, 2-40, and the queries 2 and 5; 40 and
33 are the ids 8 and 1 of the answer, whose ids begin at the first value:

    inputs   5 33 2 40 2 5
    targets  8 1
"""

import dataclasses

import tensorflow as tf

from datasets.tasks.base import (
    Task,
    check_vocabularies,
    draw_distinct,
    larger,
    place_pairs,
    smaller,
)


@dataclasses.dataclass(frozen=True)
class MQAR(Task):
    """The values of all keys of a list of pairs, in another order (MQAR).

    With a vocabulary of V ids, 0 fills, the keys are 1 to `V / 2 - 1`, and the
    other half are values. Keys and values of a problem are distinct. Target ids
    count from the first value.

    The length counts inputs and outputs. There is one pair for every 4 tokens,
    the densest of the published settings, but at most as many as keys and at
    least one: length N has D pairs, then D queries and D outputs, together 4 D
    tokens. From `4 * keys` tokens on, there is a pair for every key, and the
    remaining tokens are zeros at random places between the pairs.

    Zoology asks for a value where its query stands, spreads the queries over
    the rest of the sequence by a power law, and fills gaps with random tokens;
    here the queries follow each other. A causal model answers at the queries,
    as published; an encoder answers at empty tokens behind them. Zoology's
    vocabulary has 8,192 ids, in Python `MQAR(input_vocabulary_size=8192,
    output_vocabulary_size=4096)`. Published lengths are
    `--train_length=64,128,256 --test_lengths=64,128,256,512,1024` with 4 to 64
    pairs in training and a pair for every 4 to 16 tokens in tests; the score is
    accuracy.

    With a finite vocabulary the task is regular, but its automaton needs a
    state for every assignment of values to keys.

    Theory: two layers of attention solve it at every length, the first of
    which looks one token back (an induction head). The variant of C-RASP with
    local relations has both; that it covers this layout is our reading.

    Reference: Arora et al., 2024. https://arxiv.org/abs/2312.04927, and its
    published `multiquery_ar.py`; lengths of Arora et al., 2024 (Based),
    https://arxiv.org/abs/2402.18668.
    """

    input_vocabulary_size: int = 64
    output_vocabulary_size: int = 32
    level: str = "regular"
    random_accuracy: float = 1 / 32

    answers_in_place = True

    def __post_init__(self):
        check_vocabularies(self, 2 * self.output_vocabulary_size, least=2)

    def output_length(self, length):
        """One output for each pair."""
        return smaller(larger(length // 4, 1), self._count_keys())

    def input_length(self, length):
        """Three tokens for each pair, and fillers once all keys are used."""
        pairs = self.output_length(length)
        whole = 4 * self._count_keys()
        return 3 * pairs + larger(length - whole, 0)

    def draw(self, seed, batch_size, length):
        """Draws distinct keys and values, their places and the queries."""
        key_seed, value_seed, query_seed, place_seed = tf.unstack(
            tf.random.split(seed, 4, alg="philox")
        )
        keys = self._count_keys()
        pairs = smaller(length // 3, keys)
        fillers = length - 3 * pairs
        key = 1 + draw_distinct(key_seed, batch_size, pairs, keys)
        value = draw_distinct(
            value_seed, batch_size, pairs, self.output_vocabulary_size
        )
        query = draw_distinct(query_seed, batch_size, pairs, pairs)

        # The pairs stand at uniform places among pairs and fillers.
        order = draw_distinct(
            place_seed, batch_size, pairs + fillers, pairs + fillers
        )
        _, is_pair, is_key = place_pairs(order, pairs)
        # The number of a token's pair; that of a filler is not used.
        pair = tf.cumsum(tf.cast(is_key, tf.int32), axis=1) - 1
        pair = tf.maximum(pair, 0)

        def gather(values, index):
            return tf.gather(values, index, batch_dims=1)

        token = tf.where(
            is_key,
            gather(key, pair),
            self.output_vocabulary_size + gather(value, pair),
        )
        listed = tf.where(is_pair, token, 0)
        inputs = tf.concat([listed, gather(key, query)], axis=1)
        return inputs, gather(value, query)

    def floor_accuracy(self, length):
        """Accuracy of one of the values in the input, at all queries."""
        return 1 / self.output_length(length)

    def position_only_accuracy(self, length):
        """Accuracy of any constant: values are uniform."""
        del length
        return 1 / self.output_vocabulary_size

    def _count_keys(self):
        return self.output_vocabulary_size - 1
