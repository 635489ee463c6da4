"""The contract of a task, and what several tasks share.

A task is a file with one frozen dataclass: it draws problems of any length,
answers them, and knows how well a predictor that solved nothing would score.
"""

import dataclasses
import math
import operator

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Task:
    """A family of problems with an input and an answer at every length.

    A concrete task gives each attribute a default, so that it is made without
    arguments, and implements `draw`, `floor_accuracy` and
    `position_only_accuracy`. One whose answer is longer than one symbol
    implements `output_length` as well.

    Everything random is stateless TensorFlow: the same seed, batch size and
    length give the same batch eagerly, in a `tf.function` and inside
    `tf.data`, where the length may be a scalar tensor.

    >>> from datasets.tasks import TASKS
    >>> batch = TASKS["duplicate_string"].sample((0, 1), 8, length=5)
    >>> {name: tuple(array.shape) for name, array in batch.items()}
    {'inputs': (8, 5), 'targets': (8, 10), 'mask': (8, 10)}

    Attributes:
        input_vocabulary_size: Input ids are below this number.
        output_vocabulary_size: Target ids are below this number.
        level: The language class of the task in the Chomsky hierarchy:
            `"regular"`, `"deterministic_context_free"` or
            `"context_sensitive"`.
        random_accuracy: What the papers print as the accuracy of guessing.
            `floor_accuracy` is the one to beat.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int
    output_vocabulary_size: int
    level: str
    random_accuracy: float

    def input_length(self, length):
        """Number of input tokens of a problem asked for at `length`.

        Like the other two lengths it takes a Python int or an int tensor, and
        stays a Python int wherever the answer is static.
        """
        return length

    def output_length(self, length):
        """Number of output tokens of a problem asked for at `length`."""
        del length
        return 1

    def total_length(self, length):
        """Number of tokens a model reads: the input and a slot per output."""
        return self.input_length(length) + self.output_length(length)

    def sample(self, seed, batch_size, length):
        """Draws a batch of independent problems of one length.

        Args:
            seed: Two integers, or an int tensor of shape `(2,)`.
            batch_size: Number of problems B, an int or a scalar int tensor.
            length: Length to ask for, an int or a scalar int tensor.

        Returns:
            A dict: `"inputs"`, int32 `(B, n)` with n the `input_length`;
            `"targets"`, int32 `(B, m)` with m the `output_length`; `"mask"`,
            bool `(B, m)`, true where accuracy is measured.

        Raises:
            ValueError: The length is known before the graph runs and below 1.
        """
        static_length = tf.get_static_value(length)
        if static_length is None:
            length = tf.cast(length, tf.int32)
        else:
            length = operator.index(static_length)
            if length < 1:
                raise ValueError(
                    f"{type(self).__name__} was asked for length {length}, "
                    "but the shortest problem has 1 token: pass length >= 1."
                )
        # One dtype: `tf.random.split` gives other children for int32 seeds.
        seed = tf.cast(seed, tf.int64)
        inputs, targets = self.draw(seed, batch_size, self.input_length(length))
        return {
            "inputs": inputs,
            "targets": targets,
            "mask": self.scored(targets),
        }

    def draw(self, seed, batch_size, length):
        """Draws the inputs and their answers; `sample` is the way in.

        Args:
            seed: int64 tensor of shape `(2,)`, good for one draw. Several
                draws take children of it, by `tf.random.split`.
            batch_size: As for `sample`.
            length: The input length, a valid int or an int32 scalar tensor.

        Returns:
            Two int32 tensors: inputs `(B, n)` and targets `(B, m)`.
        """
        raise NotImplementedError

    def scored(self, targets):
        """Which output positions count for accuracy; all, unless overridden."""
        return tf.ones_like(targets, dtype=tf.bool)

    def floor_accuracy(self, length):
        """Accuracy of the best simple rule that sees tokens, not positions.

        Simple means a constant, or a rule on how often each symbol occurs
        that does not count modulo anything. A model that scores this much has
        learned nothing about order.
        """
        raise NotImplementedError

    def position_only_accuracy(self, length):
        """Accuracy of the best rule that sees positions and length, no tokens.

        A constant may differ from position to position and length to length.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class RearrangedBits(Task):
    """Base of the tasks that ask for uniform bits again, in another order.

    A subclass says in `rearrange` which bit stands where in the answer, and
    the answer holds every bit equally often.
    """

    def rearrange(self, bits):
        """Maps inputs `(B, n)` to targets `(B, m)`."""
        raise NotImplementedError

    def draw(self, seed, batch_size, length):
        """Draws independent fair bits."""
        bits = draw_symbols(seed, batch_size, length, 2)
        return bits, self.rearrange(bits)

    def floor_accuracy(self, length):
        """The more frequent bit of the sequence at every position."""
        ones = np.arange(length + 1)
        share = np.maximum(ones, length - ones) / length
        return float(compute_binomial_probabilities(length, 0.5) @ share)

    def position_only_accuracy(self, length):
        """Any constant: each bit is fair whatever its position."""
        del length
        return 0.5


def draw_symbols(seed, batch_size, length, alphabet_size):
    """Draws int32 ids `(B, length)`, each uniform below `alphabet_size`."""
    return tf.random.stateless_uniform(
        (batch_size, length),
        seed,
        maxval=alphabet_size,
        dtype=tf.int32,
        # Not "auto_select", which lets the device choose the bits.
        alg="philox",
    )


def compute_binomial_probabilities(trials, probability):
    """Probabilities of 0, 1, ..., `trials` successes, as a numpy array.

    Args:
        trials: Number of independent trials, 0 or more.
        probability: Chance of success in each, strictly between 0 and 1.
    """
    successes = np.arange(trials + 1)
    log_factorial = np.array([math.lgamma(k + 1) for k in successes])
    return np.exp(
        log_factorial[-1]
        - log_factorial
        - log_factorial[::-1]
        + successes * math.log(probability)
        + successes[::-1] * math.log1p(-probability)
    )
