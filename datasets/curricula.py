"""Curricula: which of the training lengths each training step uses.

Like all data, a curriculum is a pure function of the seed and the step. A flag
names a curriculum, or calls it with arguments: `RegularIncrease(every=1000)`.

Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
"""

import dataclasses
import numbers

import numpy as np
import tensorflow as tf


def within(default, least, most):
    """Returns a field of a curriculum that is a number from `least` to `most`.

    The number must be an integer if the default is one.
    """
    return dataclasses.field(
        default=default, metadata={"least": least, "most": most}
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Curriculum:
    """Base class of curricula.

    A subclass implements `index_at`, which chooses the length of a step. Its
    fields are bools, or numbers made by `within`.
    """

    def __post_init__(self):
        """Raises `ValueError` for a field of another type or out of range."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            fits, expected = _check(field, value)
            if not fits:
                raise ValueError(
                    f"{type(self).__name__} needs {field.name} to be "
                    f"{expected}; got {value!r}."
                )

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
        every: int, from 1 to `2 ** 31 - 1`. Number of steps after which the
            next length is added.
        amount: int, from 1 to `2 ** 31 - 1`. By how many places in the list of
            lengths the next length is after the previous one.
        shorter: bool. Whether to draw each of the lengths added so far with
            the same probability; otherwise only the newest is used.
    """

    every: int = within(1000, 1, 2**31 - 1)
    amount: int = within(1, 1, 2**31 - 1)
    shorter: bool = True

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
        tau: float from 0.001 to 1000. Above 1, longer lengths are more
            likely; below 1, shorter lengths.
    """

    tau: float = within(1.1, 0.001, 1000)

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


def _check(field, value):
    """Returns whether a field may have a value, and what it should be."""
    if isinstance(field.default, bool):
        return isinstance(value, bool), "True or False"
    least, most = field.metadata["least"], field.metadata["most"]
    kind, words = numbers.Real, "a number"
    if isinstance(field.default, int):
        kind, words = numbers.Integral, "an integer"
    fits = (
        isinstance(value, kind)
        and not isinstance(value, bool)
        # NaN is within no bounds.
        and least <= value <= most
    )
    return fits, f"{words} from {least} to {most}"


def _draw_below(count, seed):
    return tf.random.stateless_uniform(
        (), seed, maxval=count, dtype=tf.int32, alg="philox"
    )
