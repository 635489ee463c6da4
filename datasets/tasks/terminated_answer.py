"""Base of the tasks whose answer ends with a termination token."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from datasets.tasks.base import Task

TERMINATION = 2

EXAMPLES = 4096
"""Number of examples to choose a rule with, and to measure its accuracy."""


@dataclasses.dataclass(frozen=True)
class TerminatedAnswer(Task):
    """A task whose answers are bits, a termination token and zeros.

    Accuracy does not count the zeros after the termination token. Because the
    length of an answer depends on the input, there is no short formula for the
    accuracy of simple rules. It is measured: the best rule is chosen on one
    set of examples and its accuracy is measured on another.

    A subclass implements `draw`, `output_length` and `simple_rules`.
    """

    def terminate(self, bits, count):
        """Replaces the bits after the first `count` by the end of an answer.

        Args:
            bits: int32 `(B, m)`.
            count: int32 `(B, 1)`, below m. Number of bits to keep.

        Returns:
            int32 `(B, m)`: bits, the termination token, zeros.
        """
        place = tf.range(tf.shape(bits)[1])
        termination = tf.where(place == count, TERMINATION, 0)
        return tf.where(place < count, bits, termination)

    def scored(self, targets):
        """True up to and including the termination token."""
        ended = tf.cast(targets == TERMINATION, tf.int32)
        return tf.cumsum(ended, axis=1, exclusive=True) == 0

    def simple_rules(self, inputs):
        """Computes the predictions of R rules that ignore positions.

        Args:
            inputs: int array `(N, n)` of input ids.

        Returns:
            int or bool array `(R, N)`: the symbol that each rule predicts for
            all outputs of an example.
        """
        raise NotImplementedError

    def floor_accuracy(self, length):
        """Accuracy of the best of the `simple_rules`, measured on examples."""
        return _measure_floors(self, length)[0]

    def position_only_accuracy(self, length):
        """Accuracy of the most frequent symbol of each position, measured."""
        return _measure_floors(self, length)[1]


@functools.cache
def _measure_floors(task, length):
    """Returns `floor_accuracy` and `position_only_accuracy` of a task."""
    halves = [
        {
            name: array.numpy()
            for name, array in task.sample((half, 0), EXAMPLES, length).items()
        }
        for half in range(2)
    ]
    # bool (N, m, symbols): which symbol each scored output has.
    occurs = [
        half["mask"][..., np.newaxis]
        & (half["targets"][..., np.newaxis] == np.arange(TERMINATION + 1))
        for half in halves
    ]
    scored = halves[1]["mask"].sum()

    def count_hits(half):
        """Counts the correct outputs of each rule, `(R,)`."""
        rules = task.simple_rules(halves[half]["inputs"])
        counts = occurs[half].sum(axis=1)
        return np.sum(counts[np.arange(EXAMPLES), rules], axis=1)

    floor = count_hits(1)[np.argmax(count_hits(0))] / scored
    commonest = occurs[0].sum(axis=0).argmax(axis=-1)
    by_place = occurs[1].sum(axis=0)
    right = by_place[np.arange(len(commonest)), commonest].sum()
    return float(floor), float(right / scored)
