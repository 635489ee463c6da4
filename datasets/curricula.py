"""Curricula: which of the training lengths each training step uses.

Like all data, a curriculum is a pure function of the seed and the step. A flag
names a curriculum, or calls it with arguments: `RegularIncrease(every=1000)`.

Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
"""

import dataclasses

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True, kw_only=True)
class Curriculum:
    """Base class of curricula.

    A subclass implements `index_at`, which chooses the length of a step. Its
    fields are numbers; its constructor raises `ValueError` for numbers that
    are out of range.
    """

    def length_at(self, seed, step, lengths):
        """Returns the length of all examples of a step.

        Args:
            seed: int64 tensor `(2,)`, different for each step.
            step: int or scalar int tensor, at least 0.
            lengths: Increasing training lengths, in tokens.

        Returns:
            Scalar int32 tensor, one of `lengths`.
        """
        index = self.index_at(seed, step, lengths)
        return tf.gather(tf.constant(tuple(lengths), tf.int32), index)

    def index_at(self, seed, step, lengths):
        """Returns the index in `lengths` of the length of a step.

        Args:
            seed: int64 tensor `(2,)`, different for each step.
            step: int or scalar int tensor, at least 0.
            lengths: Increasing training lengths, in tokens.

        Returns:
            int or scalar int tensor.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Uniform(Curriculum):
    """Draws each length with the same probability at every step."""

    def index_at(self, seed, step, lengths):
        """Draws a uniform index."""
        del step
        return _draw_below(len(lengths), seed)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fixed(Curriculum):
    """Uses the longest length at every step."""

    def index_at(self, seed, step, lengths):
        """Returns the last index."""
        del seed, step
        return len(lengths) - 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegularIncrease(Curriculum):
    """Adds longer lengths at regular intervals during training.

    Training starts with the first length.

    Args:
        every: int, at least 1. Number of steps after which the next length is
            added.
        amount: int, at least 1. By how many places in the list of lengths the
            next length is after the previous one.
        shorter: bool. Whether to draw each of the lengths added so far with
            the same probability; otherwise only the newest is used.
    """

    every: int = 1000
    amount: int = 1
    shorter: bool = True

    def __post_init__(self):
        """Raises `ValueError` if a number is out of range."""
        for name in ("every", "amount"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"RegularIncrease needs {name} of at least 1; got "
                    f"{getattr(self, name)}."
                )

    def index_at(self, seed, step, lengths):
        """Returns the index of one of the added lengths, or of the newest."""
        increases = tf.cast(step // self.every, tf.int32)
        increases = tf.minimum(increases, (len(lengths) - 1) // self.amount)
        if self.shorter:
            increases = _draw_below(increases + 1, seed)
        return increases * self.amount


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReverseExponential(Curriculum):
    """Draws a length `n` with a probability proportional to `tau**n`.

    Args:
        tau: float, above 0. Above 1, longer lengths are more likely; below 1,
            shorter lengths.
    """

    tau: float = 1.1

    def __post_init__(self):
        """Raises `ValueError` if `tau` is not above 0."""
        if not self.tau > 0:
            raise ValueError(
                f"ReverseExponential needs tau above 0; got {self.tau}."
            )

    def index_at(self, seed, step, lengths):
        """Draws an index by inverting the cumulative distribution."""
        del step
        logarithms = np.log(self.tau) * np.asarray(lengths)
        # Scaled so that the largest power is 1, to avoid overflow.
        summed = np.cumsum(np.exp(logarithms - logarithms.max()))
        uniform = tf.random.stateless_uniform(
            (1,), seed, dtype=tf.float64, alg="philox"
        )
        return tf.searchsorted(summed[:-1] / summed[-1], uniform, "right")[0]


CURRICULA = {
    "Uniform": Uniform,
    "Fixed": Fixed,
    "RegularIncrease": RegularIncrease,
    "ReverseExponential": ReverseExponential,
}


def _draw_below(count, seed):
    return tf.random.stateless_uniform(
        (), seed, maxval=count, dtype=tf.int32, alg="philox"
    )
