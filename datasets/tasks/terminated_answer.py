"""Base of the tasks whose answer ends with a termination token."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from datasets.tasks.base import Task

TERMINATION = 2

EXAMPLES = 4096
"""Examples on which a floor is chosen, and as many to measure it."""


@dataclasses.dataclass(frozen=True)
class TerminatedAnswer(Task):
    """A task with answers of bits, a termination token, and zeros to the end.

    What follows the termination token is not scored. How long an answer is
    depends on the input, which leaves no short formula for the floors: they
    are measured, the rule chosen on some examples and measured on others.

    A subclass implements `simple_rules`.
    """

    def terminate(self, bits, count):
        """Cuts bits `(B, m)` after the first `count` `(B, 1)` of them."""
        place = tf.range(tf.shape(bits)[1])
        termination = tf.where(place == count, TERMINATION, 0)
        return tf.where(place < count, bits, termination)

    def scored(self, targets):
        """All outputs up to the termination token, with it."""
        ended = tf.cast(targets == TERMINATION, tf.int32)
        return tf.cumsum(ended, axis=1, exclusive=True) == 0

    def simple_rules(self, inputs):
        """Predictions of several rules that see no positions.

        Args:
            inputs: Numpy array of input ids `(N, n)`.

        Returns:
            Integers `(R, N)`: what each rule says at every output.
        """
        raise NotImplementedError

    def floor_accuracy(self, length):
        """The best of the `simple_rules`, measured on drawn examples."""
        return _measure_floors(self, length)[0]

    def position_only_accuracy(self, length):
        """The commonest symbol of each place, measured on drawn examples."""
        return _measure_floors(self, length)[1]


@functools.cache
def _measure_floors(task, length):
    halves = [
        {
            name: array.numpy()
            for name, array in task.sample((half, 0), EXAMPLES, length).items()
        }
        for half in range(2)
    ]
    # How often each symbol occurs, (N, m, symbols), where it is scored.
    occurs = [
        half["mask"][..., np.newaxis]
        & (half["targets"][..., np.newaxis] == np.arange(TERMINATION + 1))
        for half in halves
    ]
    scored = halves[1]["mask"].sum()

    def hits(half):
        """Right answers of every rule, (R,)."""
        rules = task.simple_rules(halves[half]["inputs"])
        counts = occurs[half].sum(axis=1)
        return np.sum(counts[np.arange(EXAMPLES), rules], axis=1)

    floor = hits(1)[np.argmax(hits(0))] / scored
    commonest = occurs[0].sum(axis=0).argmax(axis=-1)
    by_place = occurs[1].sum(axis=0)
    right = by_place[np.arange(len(commonest)), commonest].sum()
    return float(floor), float(right / scored)
