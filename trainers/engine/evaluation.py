"""The metrics of a model at every length, with few programs."""

import abc
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from trainers.engine.evaluation_sizes import split_examples


@dataclasses.dataclass(eq=False, kw_only=True)
class EvaluationStep(abc.ABC):
    """Computes the sums that metrics are made of, batch by batch.

    Args:
        model: Built Keras model.
        problem: The `Problem`.
        strategy: The `Strategy` of the backend.
        seed: int. Seed of what the model draws.
        compiled: bool. Whether XLA compiles the forward pass; on JAX it always
            does.

    Attributes:
        static_lengths: bool. Whether batches of another padded length need
            another program, so that shapes should be known before it is made.
        traces: int. Number of programs made for the forward pass so far.
    """

    model: Any
    problem: Any
    strategy: Any
    seed: int
    compiled: bool

    static_lengths = True

    @abc.abstractmethod
    def __post_init__(self):
        """Makes the programs; they are traced when they first run."""

    @abc.abstractmethod
    def place(self, batch, share):
        """Returns a batch with the share of each replica on its device.

        Args:
            batch: Dict of tensors, the same on all processes.
            share: int. Number of examples of each replica.
        """

    @abc.abstractmethod
    def run(self, length, index, batch):
        """Returns the sums over a batch, a NumPy array: see `Problem.sums`.

        Args:
            length: Length of the sequences, a scalar int32 tensor.
            index: Number of the batch, a scalar int32 tensor.
            batch: What `place` returned.
        """


class LengthEvaluation:
    """Measures a model at each of several lengths.

    Args:
        step: The `EvaluationStep` of the backend.
        buckets: Padded lengths to compute, increasing, in tokens.

    Attributes:
        positions: `{length: {position: value}}`, the first metric at the
            positions of the last evaluation's sequences, where the problem
            measures it.
    """

    def __init__(self, step, buckets):
        self.step = step
        self.problem = step.problem
        self.buckets = buckets
        self.positions = {}
        self.draw = tf.function(self._draw, autograph=False)

    def __call__(self, progress=lambda length, fraction: None):
        """Measures every length.

        Args:
            progress: Called after each batch with its length, and which
                fraction of that length's batches are done.

        Returns:
            `{metric: {length: value}}`.
        """
        results = {}
        self.positions = {}
        for length in self.problem.lengths:
            sums = self._add_up(length, progress)
            for metric, value in self.problem.measure(sums).items():
                results.setdefault(metric, {})[length] = value
            by_position = self.problem.measure_positions(sums)
            if by_position:
                self.positions[length] = by_position
        return results

    def _add_up(self, length, progress):
        tokens = self.problem.tokens(length)
        padded = min(bucket for bucket in self.buckets if bucket >= tokens)
        examples = self.problem.evaluation_examples(length)
        replicas = self.step.strategy.num_replicas
        batches, share = split_examples(examples, padded, replicas)
        number = int if self.step.static_lengths else tf.constant
        sums = 0
        for index in range(batches):
            where = tf.constant(length), tf.constant(index)
            batch = self.draw(
                *where,
                number(padded),
                number(share * replicas),
                tf.constant(examples),
            )
            found = self.step.run(*where, self.step.place(batch, share))
            sums += np.asarray(found, np.float64)
            progress(length, (index + 1) / batches)
        return sums

    def _draw(self, length, index, padded, batch_size, examples):
        batch = self.problem.evaluation_batch(
            index=index,
            batch_size=batch_size,
            length=length,
            padded_length=padded,
        )
        # Rounding up to whole batches draws some examples too many.
        number = index * batch_size + tf.range(batch_size)
        return {**batch, "used": number < examples}
