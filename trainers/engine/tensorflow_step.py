"""One step of training, and of an evaluation, on TensorFlow.

Every replica computes its share of the global batch inside
`tf.distribute.Strategy.run`; sums over replicas are explicit.
"""

import functools

import tensorflow as tf

from trainers.engine.draws import set_seeds
from trainers.engine.evaluation import EvaluationStep
from trainers.engine.training_step import TrainingStep


class TensorFlowTrainingStep(TrainingStep):
    """Computes steps of training on TensorFlow, many in one `tf.function`."""

    def __post_init__(self):
        self._loop = tf.function(self._run)
        self._gradients = tf.function(
            self._forward_backward,
            jit_compile=self.compiled and not self.strategy.on_tpu,
            autograph=False,
        )

    def iterate(self, first_step, last_step):
        make = functools.partial(self.make_batches, first_step, last_step)
        return iter(
            self.strategy.distribution.distribute_datasets_from_function(make)
        )

    def run(self, iterator, first_step, steps):
        first_step = tf.constant(first_step, tf.int64)
        return self._loop(iterator, first_step, tf.constant(steps)).numpy()

    def _run(self, iterator, first_step, steps):
        """Computes steps on the devices, without a look at the host."""
        losses = tf.TensorArray(tf.float32, size=steps)
        for index in tf.range(steps):
            step = first_step + tf.cast(index, tf.int64)
            loss = self._step(next(iterator), step)
            losses = losses.write(index, loss)
        return losses.stack()

    def _step(self, batch, step):
        if not self.compiled:
            # One program with a dynamic length.
            lengths = tf.constant(self.buckets)
            length = lengths[self.find_bucket(step)]
            return self._step_at(batch, step, length)
        branches = [
            lambda length=length: self._step_at(batch, step, length)
            for length in self.buckets
        ]
        return tf.switch_case(self.find_bucket(step), branches)

    def _step_at(self, batch, step, length):
        def on_replica(batch):
            return self.update(self.problem.cut(batch, length), step)

        losses = self.strategy.distribution.run(on_replica, args=(batch,))
        # All replicas have the loss of the global batch.
        return self.strategy.local_result(losses)

    def update(self, batch, step):
        """Computes and applies one replica's share of a step.

        Args:
            batch: Dict of tensors, the replica's batch, cut to its padded
                length.
            step: Number of the step, a scalar int64 tensor.

        Returns:
            The mean loss of the global batch, a float32 scalar.
        """
        loss, count, gradients = self._add_up(batch, step)
        # Clipping needs the gradient of the whole batch: Keras clips before
        # it reduces.
        loss, count, *gradients = (
            tf.distribute.get_replica_context().all_reduce(
                tf.distribute.ReduceOp.SUM, [loss, count, *gradients]
            )
        )
        gradients = [gradient / count for gradient in gradients]
        # In float16 the optimizer scales the loss, and takes the scale out
        # of the gradients later on.
        clip_norm = self.optimizer.scale_loss(self.clip_norm)
        gradients, _ = tf.clip_by_global_norm(gradients, clip_norm)
        self.optimizer.apply(gradients, self.model.trainable_variables)
        return loss / count

    def _add_up(self, batch, step):
        """Returns sums of a replica's losses, outputs and gradients."""
        parts = self.gradient_accumulation_steps
        if parts == 1:
            set_seeds(self.model, self.seed, step)
            return self._gradients(batch)
        loss, count = tf.constant(0.0), tf.constant(0.0)
        gradients = [
            tf.zeros(variable.shape, variable.dtype)
            for variable in self.model.trainable_variables
        ]
        for index in tf.range(parts):
            set_seeds(self.model, self.seed, step, index)
            more = self._gradients(take_part(batch, index, parts))
            loss, count = loss + more[0], count + more[1]
            gradients = [
                gradient + further
                for gradient, further in zip(gradients, more[2], strict=True)
            ]
        return loss, count, gradients

    def _forward_backward(self, batch):
        with tf.GradientTape() as tape:
            outputs = self.model(self.problem.inputs(batch), training=True)
            loss, count = self.problem.loss(outputs, batch)
            # The mean, as a sum could leave the range of float16.
            mean = loss / tf.maximum(count, 1.0)
            scaled = self.optimizer.scale_loss(mean)
        variables = self.model.trainable_variables
        # Weights may do nothing, as of a bias where a single key is: these
        # have no gradient. Embeddings give indexed slices, which replicas
        # cannot always add.
        gradients = [
            tf.zeros(variable.shape, variable.dtype)
            if gradient is None
            else tf.convert_to_tensor(gradient) * count
            for gradient, variable in zip(
                tape.gradient(scaled, variables), variables, strict=True
            )
        ]
        return loss, count, gradients


class TensorFlowEvaluationStep(EvaluationStep):
    """Computes the sums of evaluation batches on TensorFlow."""

    def __post_init__(self):
        # Compiled, every padded length is a program; otherwise one is enough.
        self.static_lengths = self.compiled
        self._run = tf.function(
            self._run_batch,
            reduce_retracing=not self.compiled,
            autograph=False,
        )
        self._forward = tf.function(
            self.measure,
            jit_compile=self.compiled and not self.strategy.on_tpu,
            autograph=False,
        )

    @property
    def traces(self):
        return self._forward.experimental_get_tracing_count()

    def place(self, batch, share):
        def part(context):
            start = context.replica_id_in_sync_group * share
            return {
                name: values[start : start + share] if values.ndim else values
                for name, values in batch.items()
            }

        distribution = self.strategy.distribution
        return distribution.experimental_distribute_values_from_function(part)

    def run(self, length, index, batch):
        return self._run(length, index, batch).numpy()

    def _run_batch(self, length, index, batch):
        def on_replica(batch):
            # Negative numbers, which no training step has.
            set_seeds(self.model, self.seed, -length, index)
            return self._forward(batch)

        distribution = self.strategy.distribution
        sums = distribution.run(on_replica, args=(batch,))
        return distribution.reduce(tf.distribute.ReduceOp.SUM, sums, axis=None)

    def measure(self, batch):
        """Returns one replica's sums of a batch: see `Problem.sums`."""
        outputs = self.model(self.problem.inputs(batch), training=False)
        return self.problem.sums(outputs, batch)


def take_part(batch, index, parts):
    """Returns part number `index` of the equal `parts` of a batch."""

    def take(values):
        if not values.shape.rank:
            return values
        size = values.shape[0] // parts
        return tf.ensure_shape(
            values[index * size : (index + 1) * size], (size, *values.shape[1:])
        )

    return {name: take(values) for name, values in batch.items()}
