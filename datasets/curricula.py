"""Curricula: which of the trained lengths a step of training has.

A curriculum is a pure function of the seed and the step, like all data. It is
written by name, or as a call: `RegularIncrease(every=1000)`.

Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
"""

import dataclasses

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True, kw_only=True)
class Curriculum:
    """The contract of a curriculum.

    A curriculum is made with numbers, raises `ValueError` for those that
    cannot work, and says in `index_at` which length comes.
    """

    def length_at(self, seed, step, lengths):
        """The length of all examples of a step.

        Args:
            seed: int64 tensor of shape `(2,)`, another one for each step.
            step: Number of the step, from 0; an int or a scalar tensor.
            lengths: The trained lengths, increasing.

        Returns:
            A scalar int32 tensor.
        """
        index = self.index_at(seed, step, lengths)
        return tf.gather(tf.constant(tuple(lengths), tf.int32), index)

    def index_at(self, seed, step, lengths):
        """Where in `lengths` the length of a step stands."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Uniform(Curriculum):
    """Every length is as likely as the others, at every step."""

    def index_at(self, seed, step, lengths):
        """Uniform."""
        del step
        return _draw_below(len(lengths), seed)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fixed(Curriculum):
    """The longest of the lengths, at every step."""

    def index_at(self, seed, step, lengths):
        """The last."""
        del seed, step
        return len(lengths) - 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegularIncrease(Curriculum):
    """Longer lengths come in as training goes on, until all have.

    Args:
        every: Steps after which the next length comes in; the first one is
            there from the start.
        amount: How many lengths further the next one is.
        shorter: Whether the shorter ones that came in before stay, all as
            likely; otherwise each replaces the one before.
    """

    every: int = 1000
    amount: int = 1
    shorter: bool = True

    def __post_init__(self):
        """Checks the numbers."""
        for name in ("every", "amount"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"RegularIncrease needs {name} of at least 1; got "
                    f"{getattr(self, name)}."
                )

    def index_at(self, seed, step, lengths):
        """One of those that have come in, or the last of them."""
        increases = tf.cast(step // self.every, tf.int32)
        increases = tf.minimum(increases, (len(lengths) - 1) // self.amount)
        if self.shorter:
            increases = _draw_below(increases + 1, seed)
        return increases * self.amount


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReverseExponential(Curriculum):
    """A length n is drawn with a probability that grows like `tau**n`.

    Args:
        tau: Above 1 long lengths are likelier, below 1 short ones.
    """

    tau: float = 1.1

    def __post_init__(self):
        """Checks the number."""
        if not self.tau > 0:
            raise ValueError(
                f"ReverseExponential needs tau above 0; got {self.tau}."
            )

    def index_at(self, seed, step, lengths):
        """The place of a uniform number among the summed probabilities."""
        del step
        logarithms = np.log(self.tau) * np.asarray(lengths)
        # The largest power is 1, so that none overflows.
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
