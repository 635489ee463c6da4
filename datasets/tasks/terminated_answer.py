"""Base of the tasks whose answer ends with a termination token."""

import dataclasses

import tensorflow as tf

from datasets.tasks.measured_floors import MeasuredFloors

TERMINATION = 2


@dataclasses.dataclass(frozen=True)
class TerminatedAnswer(MeasuredFloors):
    """A task whose answers are bits, a termination token and zeros.

    Accuracy does not count the zeros after the termination token. The length of
    an answer depends on the input, so the floors are measured.

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
