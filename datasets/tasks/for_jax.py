"""Tasks for programs of JAX, which call TensorFlow to draw their batches."""

import functools

import jax
import numpy as np
import tensorflow as tf

from datasets.tasks.batches import assemble


class TaskForJax:
    """A task in the place of a `datasets.jax_tasks.JaxTask`.

    The program calls the CPU of its host for each batch. Lengths are Python
    ints, except that of `draw_batch`.

    Args:
        task: `Task`.

    >>> import jax
    >>> from datasets.tasks import TASKS
    >>> task = TaskForJax(TASKS["parity_check"])
    >>> batch = task.draw_batch(jax.random.key(0), 8, 5, padded_length=12)
    >>> batch["token_ids"].shape
    (8, 12)
    """

    def __init__(self, task):
        # Programs of JAX have the GPUs.
        tf.config.set_visible_devices([], "GPU")
        self.task = task
        self.input_vocabulary_size = task.input_vocabulary_size
        self.output_vocabulary_size = task.output_vocabulary_size
        self.total_length = task.total_length
        self.floor_accuracy = task.floor_accuracy
        self.position_only_accuracy = task.position_only_accuracy
        self._make_sampler = functools.cache(self._make_sampler)

    def draw_batch(self, key, batch_size, length, padded_length):
        """Draws a padded batch, as `JaxTask.draw_batch` does."""
        shape = batch_size, padded_length
        rows = {
            **dict.fromkeys(("token_ids", "targets"), (shape, np.int32)),
            **dict.fromkeys(("answer", "scored"), (shape, np.bool_)),
            "lengths": ((), np.int32),
        }
        sample = self._make_sampler(batch_size, padded_length)
        return jax.pure_callback(
            lambda *which: jax.tree.map(np.asarray, sample(*which)),
            {name: jax.ShapeDtypeStruct(*row) for name, row in rows.items()},
            jax.random.bits(key, (2,), "uint32"),
            length,
            vmap_method="sequential",
        )

    def _make_sampler(self, batch_size, padded_length):
        @tf.function(
            input_signature=[
                tf.TensorSpec((2,), tf.uint32),
                tf.TensorSpec((), tf.int32),
            ]
        )
        def sample(seed, length):
            drawn = self.task.sample(seed, batch_size, length)
            return assemble(self.task, drawn, padded_length)

        return sample
