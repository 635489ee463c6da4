"""Base classes of tasks and functions that several tasks use.

A task is a file with one frozen dataclass. It draws problems of any length,
computes their answers, and gives the accuracy of simple rules that do not
solve the task.
"""

import dataclasses
import operator

import tensorflow as tf

from datasets.floors import more_frequent_bit


@dataclasses.dataclass(frozen=True)
class Task:
    """A family of problems, each with an input and an answer, of any length.

    A concrete task gives each attribute a default value, so its constructor
    needs no arguments. It implements `draw`, `floor_accuracy` and
    `position_only_accuracy`, and also `output_length` if answers are longer
    than one symbol.

    All random operations are stateless TensorFlow operations: the same seed,
    batch size and length give the same batch in eager mode, in a `tf.function`
    and inside `tf.data`, where the length may be a scalar tensor.

    >>> from datasets.tasks import TASKS
    >>> batch = TASKS["duplicate_string"].sample((0, 1), 8, length=5)
    >>> {name: tuple(array.shape) for name, array in batch.items()}
    {'inputs': (8, 5), 'targets': (8, 10), 'mask': (8, 10)}

    Attributes:
        input_vocabulary_size: int. Number of input ids.
        output_vocabulary_size: int. Number of target ids.
        level: str. Language class of the task in the Chomsky hierarchy:
            `"regular"`, `"deterministic_context_free"` or
            `"context_sensitive"`. The paper below classifies its own fifteen
            tasks; the class of another task is that of the machine that solves
            it with the vocabulary of the task.
        random_accuracy: float. Accuracy of guessing that the papers report, or
            one divided by the number of possible answers. The accuracy that a
            model has to exceed is `floor_accuracy`.
        answers_in_place: bool, of the class. Whether the outputs belong to the
            last input tokens, one to each, and depend only on tokens up to
            there, so that a causal model can give them there.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int
    output_vocabulary_size: int
    level: str
    random_accuracy: float

    answers_in_place = False

    def input_length(self, length):
        """Returns the number of input tokens of a problem of `length`.

        Like the other two methods for lengths, it takes a Python int or an int
        tensor, and returns a Python int for a Python int.
        """
        return length

    def output_length(self, length):
        """Returns the number of output tokens of a problem of `length`."""
        del length
        return 1

    def total_length(self, length):
        """Returns the number of tokens that a model reads.

        They are the input tokens and one empty token for each output token.
        """
        return self.input_length(length) + self.output_length(length)

    def causal_length(self, length):
        """Returns the number of tokens that a causal model reads.

        It is `total_length`, or `input_length` if answers are in place.
        """
        if self.answers_in_place:
            return self.input_length(length)
        return self.total_length(length)

    def sample(self, seed, batch_size, length):
        """Draws a batch of independent problems of one length.

        Args:
            seed: Two integers, or an int tensor `(2,)`.
            batch_size: int or scalar int tensor. Number of problems B.
            length: int or scalar int tensor, at least 1. Length of the
                problems.

        Returns:
            A dict: `"inputs"`, int32 `(B, n)` with n the `input_length`;
            `"targets"`, int32 `(B, m)` with m the `output_length`; `"mask"`,
            bool `(B, m)`, true where accuracy is measured.

        Raises:
            ValueError: If the length is static and below 1.
        """
        static_length = tf.get_static_value(length)
        if static_length is None:
            length = tf.cast(length, tf.int32)
        else:
            length = operator.index(static_length)
            if length < 1:
                raise ValueError(
                    f"{type(self).__name__} has no problems of length "
                    f"{length}, because the shortest problem has 1 token: pass "
                    "length >= 1."
                )
        # `tf.random.split` gives different results for int32 and int64 seeds.
        seed = tf.cast(seed, tf.int64)
        inputs, targets = self.draw(seed, batch_size, self.input_length(length))
        return {
            "inputs": inputs,
            "targets": targets,
            "mask": self.scored(targets),
        }

    def draw(self, seed, batch_size, length):
        """Draws the inputs and computes their answers, for `sample`.

        Args:
            seed: int64 tensor `(2,)`, to be used for one random operation.
                Split it with `tf.random.split` for several operations.
            batch_size: int or scalar int tensor. Number of problems B.
            length: int or scalar int32 tensor. A valid input length.

        Returns:
            Two int32 tensors: inputs `(B, n)` and targets `(B, m)`.
        """
        raise NotImplementedError

    def scored(self, targets):
        """Returns bool `(B, m)`, true for the outputs that accuracy counts.

        All outputs count unless a subclass overrides this method.
        """
        return tf.ones_like(targets, dtype=tf.bool)

    def floor_accuracy(self, length):
        """Returns the accuracy of the best simple rule without positions.

        A simple rule is a constant, or one symbol for all outputs that is a
        function of the number of times each symbol occurs, without remainders.
        A model that is not better than this rule has not learned the task.

        Args:
            length: int. Length of the problems.

        Returns:
            float in `[0, 1]`.
        """
        raise NotImplementedError

    def position_only_accuracy(self, length):
        """Returns the accuracy of the best rule that reads no tokens.

        Such a rule gives a constant symbol for each output position and each
        length.

        Args:
            length: int. Length of the problems.

        Returns:
            float in `[0, 1]`.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class RearrangedBits(Task):
    """Base of the tasks whose answer is the input bits in another order.

    A subclass implements `rearrange`, which must use every bit equally often.
    """

    def rearrange(self, bits):
        """Maps int32 inputs `(B, n)` to targets `(B, m)`."""
        raise NotImplementedError

    def draw(self, seed, batch_size, length):
        """Draws independent uniform bits."""
        bits = draw_symbols(seed, batch_size, length, 2)
        return bits, self.rearrange(bits)

    def floor_accuracy(self, length):
        """Accuracy of the more frequent bit of the input at every position."""
        return more_frequent_bit(length)

    def position_only_accuracy(self, length):
        """Accuracy of any constant: bits are uniform at every position."""
        del length
        return 0.5


@dataclasses.dataclass(frozen=True)
class RearrangedSymbols(Task):
    """Base of the tasks whose answer is distinct symbols in another order.

    A subclass implements `rearrange` and `position_only_accuracy`.
    """

    def __post_init__(self):
        check_vocabularies(self, self.output_vocabulary_size)

    def rearrange(self, symbols):
        """Maps int32 inputs `(B, n)` to targets `(B, n)`."""
        raise NotImplementedError

    def output_length(self, length):
        """One output for each input token."""
        return length

    def draw(self, seed, batch_size, length):
        """Draws distinct symbols."""
        symbols = draw_distinct(
            seed, batch_size, length, self.input_vocabulary_size
        )
        return symbols, self.rearrange(symbols)

    def floor_accuracy(self, length):
        """Accuracy of a most frequent symbol of the input, everywhere."""
        return -(-length // self.input_vocabulary_size) / length


def check_vocabularies(task, inputs, least=1):
    """Raises `ValueError` unless a task has ids for all of its tokens.

    Args:
        task: `Task`.
        inputs: int. The number of input ids that its output ids need.
        least: int. The smallest number of output ids.
    """
    name, outputs = type(task).__name__, task.output_vocabulary_size
    if outputs < least:
        raise ValueError(
            f"{name} needs an output_vocabulary_size of at least {least}; got "
            f"{outputs!r}."
        )
    if task.input_vocabulary_size != inputs:
        raise ValueError(
            f"{name} with output_vocabulary_size={outputs!r} needs "
            f"input_vocabulary_size={inputs}; got "
            f"{task.input_vocabulary_size!r}."
        )


def draw_symbols(seed, batch_size, length, alphabet_size):
    """Draws int32 ids `(B, length)`, each uniform below `alphabet_size`."""
    return tf.random.stateless_uniform(
        (batch_size, length),
        seed,
        maxval=alphabet_size,
        dtype=tf.int32,
        # Not "auto_select", whose numbers depend on the device.
        alg="philox",
    )


def draw_distinct(seed, batch_size, length, alphabet_size):
    """Draws int32 ids `(B, length)`, different ones as long as there are any.

    Every block of `alphabet_size` columns has the ids below it in a uniform
    order, so ids of a row are distinct up to this length.
    """
    blocks = (length + alphabet_size - 1) // alphabet_size
    noise = tf.random.stateless_uniform(
        (batch_size, blocks, alphabet_size), seed, alg="philox"
    )
    ids = tf.argsort(noise, axis=2)
    return tf.reshape(ids, (batch_size, blocks * alphabet_size))[:, :length]


def place_pairs(order, pairs):
    """Finds the items of tokens, where an item is a pair of tokens or one.

    Args:
        order: int32 `(B, n)`, a permutation for each row. The items with the
            numbers below `pairs` are pairs.
        pairs: int or scalar int tensor. Number of pairs.

    Returns:
        Three tensors `(B, n + pairs)`: the index of each token's item, int32;
        whether it is a pair; and whether the token is the first one of a pair,
        both bool.
    """
    is_pair = order < pairs
    ends = tf.cumsum(1 + tf.cast(is_pair, tf.int32), axis=1)
    batch_size, items = tf.unstack(tf.shape(order))
    place = tf.range(items + pairs) + tf.zeros((batch_size, 1), tf.int32)
    item = tf.searchsorted(ends, place, side="right")
    is_first = place + 1 < tf.gather(ends, item, batch_dims=1)
    return item, tf.gather(is_pair, item, batch_dims=1), is_first


def larger(first, second):
    """Returns the larger of two ints or int tensors, an int for two ints."""
    both = isinstance(first, int) and isinstance(second, int)
    return max(first, second) if both else tf.maximum(first, second)


def smaller(first, second):
    """Returns the smaller of two ints or int tensors, an int for two ints."""
    both = isinstance(first, int) and isinstance(second, int)
    return min(first, second) if both else tf.minimum(first, second)
