"""A trained model with its data."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from trainers.engine.backend import make_strategy
from trainers.errors import ConfigError
from trainers.options.evaluation import with_evaluation
from trainers.records.opened_run import OpenedRun, open_run


@dataclasses.dataclass(frozen=True)
class Loaded:
    """A trained model and its data.

    Attributes:
        opened: The `OpenedRun`.
        model: Keras model, with the weights of the checkpoint.
        problem: Its `Problem`.
    """

    opened: OpenedRun
    model: Any
    problem: Any

    @property
    def path(self):
        """`pathlib.Path` of the working directory."""
        return self.opened.path

    def check_lengths(self, flag, lengths):
        """Raises `ConfigError` for a length that the run does not evaluate.

        Args:
            flag: str. Name of the flag, for the message.
            lengths: Iterable of int.
        """
        for length in lengths:
            if length not in self.problem.lengths:
                raise ConfigError(
                    f"{flag}={length} is not a length that {self.path} "
                    f"evaluates: choose from {_shorten(self.problem.lengths)}."
                )


def load(config, text):
    """Loads the model and the data of a run."""
    opened = open_run(text, config.checkpoint, config.data_dir)
    analyzed = with_evaluation(opened.config, config.evaluation)
    strategy = make_strategy("one_device")
    model, _, problem = opened.experiment.make_parts(analyzed, strategy)
    opened.prepare(problem)
    opened, _ = opened.load(model)
    return Loaded(opened, model, problem)


def read(problem, length, examples):
    """Returns a batch of test sequences of a length, NumPy arrays."""
    batch = problem.evaluation_batch(
        index=tf.constant(0),
        batch_size=examples,
        length=tf.constant(length),
        padded_length=problem.tokens(length),
    )
    # Not tensors of TensorFlow, which JAX does not take.
    return {name: values.numpy() for name, values in batch.items()}


def take(inputs, number):
    """Returns the inputs of one sequence of a batch."""
    return {
        # A scalar, such as a length, is that of all sequences.
        name: values[number : number + 1] if len(values.shape) else values
        for name, values in inputs.items()
    }


def find_counted(problem, batch, length, shape):
    """Returns which tokens of a batch are no padding.

    Args:
        problem: The `Problem`.
        batch: The batch.
        length: int. Its length.
        shape: `(B, T)`.

    Returns:
        bool `(B, T)`.
    """
    tokens = problem.tokens(length)
    counts = np.asarray(batch.get("lengths", tokens)).reshape(-1, 1)
    return np.broadcast_to(np.arange(shape[1]) < counts, shape)


def _shorten(lengths):
    """Describes lengths, all of them or the first and the last ones."""
    shown = [str(length) for length in lengths]
    if len(shown) > 8:
        shown = [*shown[:4], "...", *shown[-3:]]
    return ", ".join(shown)
