"""What the training steps of both backends have in common."""

import abc
import dataclasses
from typing import Any

import tensorflow as tf


@dataclasses.dataclass(eq=False, kw_only=True)
class TrainingStep(abc.ABC):
    """Computes steps of training, one program for every padded length.

    Args:
        model: Built Keras model.
        optimizer: Built Keras optimizer that takes summed gradients, such as
            `trainers.engine.optimizer.Adam`.
        problem: The `Problem`.
        strategy: The `Strategy` of the backend.
        buckets: Padded lengths, increasing, in tokens.
        seed: int. Seed of dropout and positions.
        clip_norm: float. Largest global norm of the gradients.
        compiled: bool. Whether XLA compiles the forward and backward pass; on
            JAX it always does.
        gradient_accumulation_steps: int, at least 1. Number of equal parts
            that a replica's batch is divided into, computed one after the
            other so that each fits into memory.
    """

    model: Any
    optimizer: Any
    problem: Any
    strategy: Any
    buckets: tuple
    seed: int
    clip_norm: float
    compiled: bool
    gradient_accumulation_steps: int = 1

    @abc.abstractmethod
    def __post_init__(self):
        """Makes the programs; they are traced when they first run."""

    @abc.abstractmethod
    def iterate(self, first_step, last_step):
        """Returns an iterator of batches for this process' replicas.

        Args:
            first_step: int. Number of the first step, from 0.
            last_step: int. Number of the step to end before.
        """

    @abc.abstractmethod
    def run(self, iterator, first_step, steps):
        """Computes steps and updates the model and the optimizer.

        Args:
            iterator: What `iterate` returned.
            first_step: int. Number of the first step.
            steps: int. Number of steps.

        Returns:
            NumPy array `(steps,)`, the mean loss of each global batch.
        """

    def make_batches(self, first_step, last_step, context):
        """Makes the data set of one process' batches, one for each replica.

        Args:
            first_step: int. Number of the first step, from 0.
            last_step: int. Number of the step to end before.
            context: `tf.distribute.InputContext` of the process.

        Returns:
            A `tf.data.Dataset`: for each step, one batch after the other.
        """
        return self.problem.training_batches(
            padded_length=self.buckets[-1],
            first_step=first_step,
            last_step=last_step,
            context=context,
        )

    def find_bucket(self, step):
        """Returns the index of a step's padded length, a scalar int32 tensor.

        Args:
            step: Number of the step, a scalar int64 tensor.
        """
        return find_bucket(self.problem.tokens_at(step), self.buckets)


def find_bucket(length, buckets):
    """Returns the index of the smallest padded length that is long enough.

    Args:
        length: Number of tokens, an int or a scalar tensor.
        buckets: Padded lengths, increasing.

    Returns:
        A scalar int32 tensor.
    """
    return tf.searchsorted(
        tf.constant(tuple(buckets), tf.int32), tf.reshape(length, (1,))
    )[0]
