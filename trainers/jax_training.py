"""The training loop's parts on JAX: data parallelism over all devices.

One program computes the whole step, on a global batch that is spread over the
devices; XLA adds the sums of gradients. Model, data, loop and checkpoints are
those of TensorFlow, so that a run may go on under the other backend.
"""

import contextlib
import os

import jax
import keras
import numpy as np
import tensorflow as tf
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec
from keras import ops

from trainers import length_evaluation, loop
from trainers.config import ConfigError
from trainers.loop import cut, inputs_of, seed_states
from trainers.strategies import NO_TPU, local_tpus
from trainers.waiting import wait_for


class DataParallel:
    """What trainers ask of a strategy, for JAX.

    Args:
        devices: JAX devices, those of all processes.
    """

    lost = (jax.errors.JaxRuntimeError, ValueError)
    """What is seen of a process that is gone, among other things."""

    def __init__(self, devices):
        # TensorFlow only makes the data.
        tf.config.set_visible_devices([], "GPU")
        self.devices = devices
        self.num_replicas_in_sync = len(devices)
        self.several_workers = len({d.process_index for d in devices}) > 1
        self.is_chief = jax.process_index() == 0
        self.distribution = keras.distribution.DataParallel(
            device_mesh=keras.distribution.DeviceMesh(
                (len(devices),), ["batch"], np.array(devices)
            ),
            auto_shard_dataset=False,
        )
        mesh = jax.sharding.Mesh(np.array(devices), ["batch"])
        self._split = NamedSharding(mesh, PartitionSpec("batch"))
        self._whole = NamedSharding(mesh, PartitionSpec())

    @property
    def worker_devices(self):
        """Names of this process' devices."""
        return tuple(
            str(device)
            for device in self.devices
            if device.process_index == jax.process_index()
        )

    def from_chief(self, values):
        """The arrays of the first process, in every process."""
        return multihost_utils.broadcast_one_to_all(values)

    def on_any_worker(self, flag):
        """Whether a flag is set in some process."""
        return bool(multihost_utils.process_allgather(np.array(flag)).any())

    @contextlib.contextmanager
    def scope(self):
        """Variables made within are on all devices."""
        before = keras.distribution.distribution()
        keras.distribution.set_distribution(self.distribution)
        try:
            yield
        finally:
            keras.distribution.set_distribution(before)

    def input_context(self):
        """Which part of the data this process makes."""
        return tf.distribute.InputContext(
            num_input_pipelines=jax.process_count(),
            input_pipeline_id=jax.process_index(),
            num_replicas_in_sync=self.num_replicas_in_sync,
        )

    def spread(self, batch):
        """A batch of this process' examples, as parts of global arrays."""
        return {
            name: jax.make_array_from_process_local_data(
                self._split if np.ndim(values) else self._whole,
                np.asarray(values),
            )
            for name, values in batch.items()
        }


def make_strategy(name, tpu="local"):
    """The `DataParallel` of a name.

    Args:
        name: `"one_device"`; `"mirrored"`: all devices of this process;
            `"multi_worker"`: those of all processes; `"tpu"`: the same, and
            they are TPUs; `"auto"`: the same, whatever they are.
        tpu: `"local"`.

    Raises:
        ConfigError: If the devices are not there.
    """
    if tpu != "local":
        raise ConfigError(
            "JAX runs on the hosts of a TPU themselves: leave --tpu out, and "
            "start the command on each of them."
        )
    if name == "tpu" and not local_tpus():
        raise ConfigError(NO_TPU)
    listed = os.environ.get("KERAS_DISTRIBUTION_NUM_PROCESSES", "1")
    if name == "auto" and listed != "1":
        name = "multi_worker"
    if name in ("multi_worker", "tpu"):
        first = os.environ.get("KERAS_DISTRIBUTION_JOB_ADDRESSES", "")
        if first and os.environ.get("KERAS_DISTRIBUTION_PROCESS_ID") != "0":
            wait_for(first.split(",")[:1])
        try:
            keras.distribution.initialize()
        except (RuntimeError, ValueError) as error:
            raise ConfigError(
                f"--strategy={name} cannot find the other processes: "
                f"{str(error).strip().rstrip('.')}. Set "
                "KERAS_DISTRIBUTION_JOB_ADDRESSES=host1:2222,host2:2222, "
                "KERAS_DISTRIBUTION_NUM_PROCESSES=2 and, from 0 on, "
                "KERAS_DISTRIBUTION_PROCESS_ID."
            ) from None
    elif listed != "1":
        raise ConfigError(
            f"KERAS_DISTRIBUTION_NUM_PROCESSES is {listed}, but each process "
            f"would train alone with --strategy={name}: use multi_worker."
        )
    devices = jax.devices()
    if name == "tpu" and jax.default_backend() != "tpu":
        raise ConfigError(
            f"--strategy=tpu needs JAX for TPUs; this one shows {devices}: in "
            "a fresh environment, pip install -e '.[tensorflow,jax]' jax[tpu]."
        )
    if name == "one_device":
        devices = jax.local_devices()[:1]
    if name == "mirrored":
        devices = jax.local_devices()
        if len(devices) < 2:
            raise ConfigError(
                "--strategy=mirrored needs at least two devices; JAX shows "
                f"{len(devices)}: use --strategy=one_device."
            )
    return DataParallel(devices)


class TrainingStep(loop.TrainingStep):
    """One step of training on JAX, a program for every padded length."""

    def _compile(self):
        self._update = jax.jit(self._compute_update, donate_argnums=0)
        self._bucket = tf.function(self.problem.bucket)

    def batches(self, first_step, last_step):
        """An iterator of the batches of this process."""
        local = len(self.strategy.worker_devices)
        dataset = self.problem.dataset(
            first_step, last_step, self.strategy.input_context()
        )
        # A batch for each replica: one process computes with all of its own.
        dataset = dataset.batch(local, drop_remainder=True).prefetch(2)
        return dataset.as_numpy_iterator()

    def run(self, iterator, first_step, steps):
        """Losses of `steps` steps from `first_step` on."""
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
            bucket = int(self._bucket(tf.constant(step, tf.int64)))
            batch = cut(batch, self.problem.buckets[bucket])
            loss, state = self._update(state, self.strategy.spread(batch), step)
            losses.append(loss)
        for variables, values in zip(owners, state, strict=True):
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
        return np.array(losses)

    def _compute_update(self, state, batch, step):
        weights, slots = state
        numbers = self.seed, step
        if self.parts == 1:
            loss, count, gradients = self._gradients(state, batch, numbers)
        else:

            def add(index, sums):
                # Strided, so that every device has a share of each part.
                some = {
                    name: values.reshape(-1, self.parts, *values.shape[1:])[
                        :, index
                    ]
                    if values.ndim
                    else values
                    for name, values in batch.items()
                }
                more = self._gradients(state, some, (*numbers, index))
                return jax.tree.map(jax.numpy.add, sums, more)

            zeros = (0.0, 0.0, [jax.numpy.zeros_like(w) for w in weights])
            loss, count, gradients = jax.lax.fori_loop(
                0, self.parts, add, jax.tree.map(jax.numpy.float32, zeros)
            )
        gradients = [gradient / count for gradient in gradients]
        norm = ops.sqrt(sum(ops.sum(ops.square(g)) for g in gradients))
        clip_norm = self._scaled(self.clip_norm, slots)
        ratio = clip_norm / ops.maximum(norm, clip_norm)
        gradients = [gradient * ratio for gradient in gradients]
        state = self.optimizer.stateless_apply(slots, gradients, weights)
        return loss / count, state

    def _gradients(self, state, batch, numbers):
        """Sums of losses, outputs and gradients of a batch."""
        weights, slots = state
        fixed = draw_states(self.model, *numbers)

        def mean_loss(weights):
            outputs, _ = self.model.stateless_call(
                weights, fixed, inputs_of(batch), training=True
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


class LengthEvaluation(length_evaluation.LengthEvaluation):
    """Measures a model at each of several lengths, on JAX."""

    def _compile(self, compiled):
        del compiled
        self._number = int
        self._draw = tf.function(self._draw_batch)
        self._run = jax.jit(self._compute_sums)

    @property
    def traces(self):
        """How many programs were made for the forward pass so far."""
        return self._run._cache_size()

    def _place(self, batch, share):
        local = len(self.strategy.worker_devices) * share
        start = jax.process_index() * local
        return self.strategy.spread(
            {
                name: values[start : start + local] if values.ndim else values
                for name, values in batch.items()
            }
        )

    def _compute(self, length, index, batch):
        weights = [weight.value for weight in self.model.trainable_variables]
        return np.asarray(self._run(weights, int(length), int(index), batch))

    def _compute_sums(self, weights, length, index, batch):
        # Negative numbers, which no training step has.
        fixed = draw_states(self.model, self.seed, -length, index)
        logits, _ = self.model.stateless_call(
            weights, fixed, inputs_of(batch), training=False
        )
        return length_evaluation.sums(logits, batch)


def draw_states(model, *numbers):
    """Values of the variables that are not trained, for a stateless call.

    The next draws of the model are a function of integers.
    """
    key = jax.random.key(0)
    for number in numbers:
        key = jax.random.fold_in(key, number)
    states = {id(state): None for state in seed_states(model)}
    words = jax.random.bits(key, (max(len(states), 1), 2))
    drawn = dict(zip(states, words, strict=False))
    return [
        drawn[id(variable)].astype(variable.dtype)
        if id(variable) in drawn
        else variable.value
        for variable in model.non_trainable_variables
    ]
