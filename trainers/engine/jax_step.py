"""One step of training, and of an evaluation, on JAX.

One program computes the whole step, on a global batch that is spread over the
devices; XLA adds the sums of gradients. Model, data, loop and checkpoints are
those of TensorFlow, so that a run may go on under the other backend.
"""

import jax
import keras
import numpy as np
import tensorflow as tf
from keras import ops

from trainers.engine.evaluation import EvaluationStep
from trainers.engine.jax_draws import draw_states
from trainers.engine.optimizer import clip_gradients
from trainers.engine.training_step import TrainingStep


class JaxTrainingStep(TrainingStep):
    """Computes steps of training on JAX, one program for each padded length."""

    def __post_init__(self):
        self.update = jax.jit(self._compute_update, donate_argnums=0)
        self._index = tf.function(self.find_bucket, autograph=False)

    def iterate(self, first_step, last_step):
        dataset = self.make_batches(
            first_step, last_step, self.strategy.input_context()
        )
        # A batch for each replica: one process computes with all of its own.
        local = len(self.strategy.devices)
        dataset = dataset.batch(local, drop_remainder=True).prefetch(2)
        return dataset.as_numpy_iterator()

    def run(self, iterator, first_step, steps):
        owners = (self.model.trainable_variables, self.optimizer.variables)
        # The program takes the arrays over: until the end, the variables have
        # none.
        state = tuple(
            [variable.value for variable in variables] for variables in owners
        )
        losses = []
        for step in range(first_step, first_step + steps):
            batch = {
                name: np.concatenate(values) if values.ndim > 1 else values[0]
                for name, values in next(iterator).items()
            }
            bucket = int(self._index(tf.constant(step, tf.int64)))
            batch = self.problem.cut(batch, self.buckets[bucket])
            with self.strategy.computing():
                loss, state = self.update(
                    state, self.strategy.spread(batch), step
                )
            losses.append(loss)
        for variables, values in zip(owners, state, strict=True):
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
        return np.array(losses)

    def _compute_update(self, state, batch, step):
        weights, slots = state
        numbers = self.seed, step
        parts = self.gradient_accumulation_steps
        if parts == 1:
            loss, count, gradients = self._gradients(state, batch, numbers)
        else:

            def add(index, sums):
                # Strided, so that every device has a share of each part.
                some = {
                    name: values.reshape(-1, parts, *values.shape[1:])[:, index]
                    if values.ndim
                    else values
                    for name, values in batch.items()
                }
                more = self._gradients(state, some, (*numbers, index))
                return jax.tree.map(jax.numpy.add, sums, more)

            zeros = (0.0, 0.0, [jax.numpy.zeros_like(w) for w in weights])
            loss, count, gradients = jax.lax.fori_loop(
                0, parts, add, jax.tree.map(jax.numpy.float32, zeros)
            )
        gradients = clip_gradients(
            [gradient / count for gradient in gradients],
            self._scaled(self.clip_norm, slots),
        )
        state = self.optimizer.stateless_apply(slots, gradients, weights)
        return loss / count, state

    def _gradients(self, state, batch, numbers):
        """Returns sums of losses, outputs and gradients of a batch."""
        weights, slots = state
        fixed = draw_states(self.model, *numbers)

        def mean_loss(weights):
            outputs, _ = self.model.stateless_call(
                weights, fixed, self.problem.inputs(batch), training=True
            )
            loss, count = self.problem.loss(outputs, batch)
            mean = loss / ops.maximum(count, 1.0)
            return self._scaled(mean, slots), (loss, count)

        gradients, (loss, count) = jax.grad(mean_loss, has_aux=True)(weights)
        return loss, count, [gradient * count for gradient in gradients]

    def _scaled(self, number, slots):
        """In float16 the optimizer scales the loss."""
        mapping = list(zip(self.optimizer.variables, slots, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return self.optimizer.scale_loss(number)


class JaxEvaluationStep(EvaluationStep):
    """Computes the sums of evaluation batches on JAX."""

    def __post_init__(self):
        self.measure = jax.jit(self._compute_sums)

    @property
    def traces(self):
        return self.measure._cache_size()

    def place(self, batch, share):
        local = len(self.strategy.devices) * share
        start = jax.process_index() * local
        return self.strategy.spread(
            {
                name: values[start : start + local] if values.ndim else values
                for name, values in batch.items()
            }
        )

    def run(self, length, index, batch):
        weights = [weight.value for weight in self.model.trainable_variables]
        with self.strategy.computing():
            sums = self.measure(weights, int(length), int(index), batch)
        return np.asarray(sums)

    def _compute_sums(self, weights, length, index, batch):
        # Negative numbers, which no training step has.
        fixed = draw_states(self.model, self.seed, -length, index)
        outputs, _ = self.model.stateless_call(
            weights, fixed, self.problem.inputs(batch), training=False
        )
        return self.problem.sums(outputs, batch)
