"""The training loop under every strategy."""

import functools
import math
import time

import keras
import tensorflow as tf

from trainers.errors import TrainingError


class TrainingStep:
    """One step of training, by the number of its padded length.

    Args:
        model: Built Keras model that takes a batch.
        optimizer: Built Keras optimizer that takes summed gradients, as
            `trainers.engine.optimizer.Adam`.
        problem: The `Problem`.
        strategy: The `tf.distribute` strategy.
        buckets: Padded lengths, increasing, in tokens.
        seed: Seed of dropout and positions.
        clip_norm: Largest global norm of the gradients.
        compiled: Whether XLA compiles the forward and backward pass.
        gradient_accumulation_steps: Into how many parts, one after the other,
            a replica divides its batch, so that it fits into memory.
    """

    def __init__(
        self,
        model,
        optimizer,
        problem,
        strategy,
        *,
        buckets,
        seed,
        clip_norm,
        compiled,
        gradient_accumulation_steps=1,
    ):
        self.model = model
        self.optimizer = optimizer
        self.problem = problem
        self.strategy = strategy
        self.buckets = buckets
        self.seed = seed
        self.clip_norm = clip_norm
        self.compiled = compiled
        self.parts = gradient_accumulation_steps
        self._compile()

    def _compile(self):
        self._loop = tf.function(self._run)
        self._gradients = tf.function(
            self._forward_backward,
            jit_compile=self.compiled and not on_tpu(self.strategy),
        )

    def batches(self, first_step, last_step):
        """An iterator of the batches of this process, for all its replicas."""

        def dataset(context):
            return self.batches_of_process(first_step, last_step, context)

        return iter(self.strategy.distribute_datasets_from_function(dataset))

    def batches_of_process(self, first_step, last_step, context):
        """The batches of the replicas of a process, one after the other."""
        return self.problem.training_batches(
            padded_length=self.buckets[-1],
            first_step=first_step,
            last_step=last_step,
            context=context,
        )

    def bucket(self, step):
        """Index of the padded length of a step."""
        return bucket_of(self.problem.tokens_at(step), self.buckets)

    def run(self, iterator, first_step, steps):
        """Losses of `steps` steps from `first_step` on."""
        first_step = tf.constant(first_step, tf.int64)
        return self._loop(iterator, first_step, tf.constant(steps)).numpy()

    def _run(self, iterator, first_step, steps):
        """Losses of `steps` steps from `first_step` on, on the devices."""
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
            length = lengths[self.bucket(step)]
            return self._step_at(batch, step, length)
        branches = [
            lambda length=length: self._step_at(batch, step, length)
            for length in self.buckets
        ]
        return tf.switch_case(self.bucket(step), branches)

    def _step_at(self, batch, step, length):
        def on_replica(batch):
            return self.update(self.problem.cut(batch, length), step)

        losses = self.strategy.run(on_replica, args=(batch,))
        # All replicas have the loss of the global batch.
        return self.strategy.experimental_local_results(losses)[0]

    def update(self, batch, step):
        """What one replica does in a step.

        Args:
            batch: The replica's batch, cut to its padded length.
            step: Number of the step, a scalar int64 tensor.

        Returns:
            The mean loss of the global batch.
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
        """Sums of a replica's losses, outputs and gradients."""
        if self.parts == 1:
            set_seeds(self.model, self.seed, step)
            return self._gradients(batch)
        loss, count = tf.constant(0.0), tf.constant(0.0)
        gradients = [
            tf.zeros(variable.shape, variable.dtype)
            for variable in self.model.trainable_variables
        ]
        for index in tf.range(self.parts):
            set_seeds(self.model, self.seed, step, index)
            more = self._gradients(part(batch, index, self.parts))
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
        gradients = tape.gradient(scaled, self.model.trainable_variables)
        # Embeddings give indexed slices, which replicas cannot always add.
        gradients = [
            tf.convert_to_tensor(gradient) * count for gradient in gradients
        ]
        return loss, count, gradients


def train(
    step,
    checkpoints,
    *,
    steps,
    steps_per_loop,
    checkpoint_every,
    evaluate_every=0,
    callbacks=(),
    check=lambda before_stopping: None,
):
    """Trains from the newest checkpoint to `steps` steps.

    Args:
        step: The `TrainingStep`.
        checkpoints: The `Checkpoints` of the run.
        steps: Number of the last step.
        steps_per_loop: Steps run on the devices without a look at the host.
        checkpoint_every: Steps between checkpoints; the last one is saved
            always.
        evaluate_every: Steps between evaluations, 0 for none.
        callbacks: Keras callbacks. `on_train_begin` is told the `step` it
            starts from and `on_train_batch_end` the step that ended, with
            the mean `loss` of the steps since the last call and `seconds`
            spent training; `on_test_begin` says that it is time to evaluate,
            once more after a resumption at that step.
        check: Called after every loop with a function that saves the state;
            may raise an error to stop.

    Returns:
        Seconds spent training, over all resumptions.

    Raises:
        TrainingError: If a loss is not finite, or a checkpoint cannot be
            written.
    """
    done, seconds = checkpoints.restore()
    callbacks = keras.callbacks.CallbackList(
        list(callbacks), model=step.model, steps=steps
    )
    callbacks.on_train_begin({"step": done, "seconds": seconds})
    if done < steps:
        iterator = step.batches(done, steps)
    while done < steps:
        if evaluate_every and done and done % evaluate_every == 0:
            callbacks.on_test_begin({"step": done, "seconds": seconds})
        every = (steps_per_loop, checkpoint_every, evaluate_every or steps)
        until = min(steps, *(done + every_ - done % every_ for every_ in every))
        start = time.monotonic()
        losses = step.run(iterator, done, until - done)
        seconds += time.monotonic() - start
        _check_finite(losses, done, checkpoints)
        done = until
        loss = float(losses.mean())
        callbacks.on_train_batch_end(done, {"loss": loss, "seconds": seconds})
        save = functools.partial(checkpoints.save, done, seconds)
        if done == steps or done % checkpoint_every == 0:
            save()
        check(save)
    callbacks.on_train_end({"step": done, "seconds": seconds})
    return seconds


def _check_finite(losses, first_step, checkpoints):
    for index, loss in enumerate(losses):
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss of step {first_step + index + 1} is {loss}; the "
                f"last good checkpoint is {checkpoints.latest}: lower the "
                "learning rate or change the seed."
            )


def on_tpu(strategy):
    """Whether all that a replica does is compiled without our asking."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def bucket_of(length, buckets):
    """Returns the index of the smallest padded length that is long enough.

    Args:
        length: Number of tokens, an int or a scalar tensor.
        buckets: Increasing padded lengths.

    Returns:
        A scalar int32 tensor.
    """
    return tf.searchsorted(
        tf.constant(tuple(buckets), tf.int32), tf.reshape(length, (1,))
    )[0]


def part(batch, index, parts):
    """Part number `index` of the equal `parts` of a batch."""

    def take(values):
        if not values.shape.rank:
            return values
        size = values.shape[0] // parts
        return tf.ensure_shape(
            values[index * size : (index + 1) * size], (size, *values.shape[1:])
        )

    return {name: take(values) for name, values in batch.items()}


def set_seeds(model, *numbers):
    """Makes the next draws of a model a function of integers and replica.

    Every generator of the model gets a state of its own. Called on a replica,
    before anything compiled: what is compiled reads the states.

    Args:
        model: Keras model.
        *numbers: Integers or scalar tensors that name the draw.
    """
    states = seed_states(model)
    if not states:
        return
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    key = tf.constant([0, 0], tf.int64)
    for number in (*numbers, replica):
        key = tf.random.fold_in(key, tf.cast(number, tf.int64), alg="philox")
    values = tf.random.stateless_uniform(
        (len(states), 2), key, maxval=2**31 - 1, dtype=tf.int32, alg="philox"
    )
    for state, value in zip(states, tf.unstack(values), strict=True):
        state.assign(tf.cast(value, state.dtype))


def seed_states(model):
    """The states of all random generators of a model."""
    weights = {id(weight) for weight in model.weights}
    return [
        variable for variable in model.variables if id(variable) not in weights
    ]
