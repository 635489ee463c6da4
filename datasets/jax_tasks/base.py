"""Base class of tasks that JAX draws, and functions that they share.

Distributions, ids and floors equal those of `datasets.tasks`; the random draws
differ. Shapes are static and a length may be a traced scalar, so that one
program serves all lengths up to the padded one.
"""

import dataclasses

import jax
from jax import numpy as jnp


@dataclasses.dataclass(frozen=True)
class JaxTask:
    """A family of problems, each with an input and an answer, of any length.

    A concrete task gives each attribute a default value. It implements `draw`,
    `floor_accuracy` and `position_only_accuracy`, and also `output_length` if
    answers are longer than one symbol. Every output counts for accuracy.

    >>> import jax
    >>> from datasets.jax_tasks import JAX_TASKS
    >>> task = JAX_TASKS["reverse_string"]
    >>> batch = task.draw_batch(jax.random.key(0), 8, 5, padded_length=12)
    >>> {name: tuple(array.shape) for name, array in batch.items()}
    {'token_ids': (8, 12), 'lengths': (), 'targets': (8, 12),
     'answer': (8, 12), 'scored': (8, 12)}

    Attributes:
        input_vocabulary_size: int. Number of input ids.
        output_vocabulary_size: int. Number of target ids.
    """

    input_vocabulary_size: int
    output_vocabulary_size: int

    def output_length(self, length):
        """Returns the number of output tokens of a problem of `length`."""
        del length
        return 1

    def total_length(self, length):
        """Returns the number of input tokens and of their output slots."""
        return length + self.output_length(length)

    def draw_batch(self, key, batch_size, length, padded_length):
        """Draws a padded batch of independent problems of one length.

        The problems do not depend on the padded length.

        Args:
            key: JAX key.
            batch_size: int. Number of problems B.
            length: int or scalar int32 array, at least 1. Their length.
            padded_length: int, at least `total_length(length)`. Number of
                tokens P.

        Returns:
            Dict in the format of `datasets.tasks.batches.assemble`.
        """
        inputs, targets = self.draw(key, batch_size, padded_length, length)
        end = length + self.output_length(length)
        places = jnp.arange(padded_length)
        answer = (places >= length) & (places < end)
        answer = jnp.broadcast_to(answer, (batch_size, padded_length))
        empty = jnp.where(answer, self.input_vocabulary_size, 0)
        # Outputs begin after the inputs.
        shifted = jnp.roll(targets, length, axis=1)
        return {
            "token_ids": jnp.where(places < length, inputs, empty),
            "lengths": jnp.int32(end),
            "targets": jnp.where(answer, shifted, 0),
            "answer": answer,
            "scored": answer,
        }

    def draw(self, key, batch_size, width, length):
        """Draws the inputs and computes their answers, for `draw_batch`.

        Args:
            key: JAX key, to be used for one random operation.
            batch_size: int. Number of problems B.
            width: int, above `length`. Number of columns W.
            length: int or scalar int32 array, at least 1.

        Returns:
            Two int32 arrays `(B, W)`: the inputs in the first `length`
            columns, the targets in the first `output_length(length)`. Other
            columns are not used.
        """
        raise NotImplementedError

    def floor_accuracy(self, length):
        """Returns the accuracy of the best simple rule without positions."""
        raise NotImplementedError

    def position_only_accuracy(self, length):
        """Returns the accuracy of the best rule that reads no tokens."""
        raise NotImplementedError


def draw_symbols(key, batch_size, width, alphabet_size):
    """Draws int32 ids `(B, W)`, each uniform below `alphabet_size`.

    A column is the same for every width.
    """
    # JAX numbers draws along the last axis first.
    shape = (width, batch_size)
    return jax.random.randint(key, shape, 0, alphabet_size, "int32").T
