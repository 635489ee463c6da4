"""Data parallelism on JAX, on one machine or several."""

import contextlib
import os

import jax
import keras
import numpy as np
import tensorflow as tf
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec

from trainers.devices.strategy import NO_TPU, Strategy, find_local_tpus
from trainers.devices.waiting import wait_for
from trainers.errors import ConfigError


class JaxStrategy(Strategy):
    """Devices of JAX.

    Args:
        devices: List of `jax.Device`, those of all processes.
    """

    def __init__(self, devices):
        # TensorFlow only makes the data.
        tf.config.set_visible_devices([], "GPU")
        self.num_replicas = len(devices)
        self._devices = tuple(
            str(device)
            for device in devices
            if device.process_index == jax.process_index()
        )
        self.several_workers = len({d.process_index for d in devices}) > 1
        self.is_chief = jax.process_index() == 0
        self._distribution = keras.distribution.DataParallel(
            device_mesh=keras.distribution.DeviceMesh(
                (len(devices),), ["batch"], np.array(devices)
            ),
            auto_shard_dataset=False,
        )
        self._mesh = jax.sharding.Mesh(np.array(devices), ["batch"])
        self._split = NamedSharding(self._mesh, PartitionSpec("batch"))
        self._whole = NamedSharding(self._mesh, PartitionSpec())

    @property
    def devices(self):
        return self._devices

    @contextlib.contextmanager
    def scope(self):
        before = keras.distribution.distribution()
        keras.distribution.set_distribution(self._distribution)
        try:
            yield
        finally:
            keras.distribution.set_distribution(before)

    def computing(self):
        """Returns a context in which layers find the devices of the batch."""
        return jax.set_mesh(self._mesh)

    def from_chief(self, values):
        if not self.several_workers:
            return values
        return multihost_utils.broadcast_one_to_all(values)

    def on_any_worker(self, flag):
        if not self.several_workers:
            return flag
        return bool(multihost_utils.process_allgather(np.array(flag)).any())

    def means_lost_worker(self, error):
        # JAX has no class of its own for that; Gloo joins its processes.
        kinds = (jax.errors.JaxRuntimeError, ValueError)
        return isinstance(error, kinds) and "Gloo" in str(error)

    def input_context(self):
        """Returns which part of the data this process makes."""
        return tf.distribute.InputContext(
            num_input_pipelines=jax.process_count(),
            input_pipeline_id=jax.process_index(),
            num_replicas_in_sync=self.num_replicas,
        )

    def find_sharding(self, rank):
        """Returns how the arrays of a batch with a rank are spread."""
        return self._split if rank else self._whole

    def spread(self, batch):
        """Returns a batch of this process as its part of global arrays."""
        return {
            name: jax.make_array_from_process_local_data(
                self.find_sharding(np.ndim(values)), np.asarray(values)
            )
            for name, values in batch.items()
        }


def make_strategy(name, tpu="local"):
    """Makes the strategy of a name.

    Args:
        name: `"one_device"`: the first device. `"mirrored"`: all devices of
            this process. `"multi_worker"`, `"tpu"`, `"auto"`: all devices of
            all processes; for `"tpu"` they must be TPUs.
        tpu: `"local"`, the only choice.

    Returns:
        A `JaxStrategy`.

    Raises:
        ConfigError: If the devices are not there.
    """
    if tpu != "local":
        raise ConfigError(
            "JAX runs on the hosts of a TPU themselves: remove --tpu, and "
            "start the command on each of them."
        )
    if name == "tpu" and not find_local_tpus():
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
    return JaxStrategy(devices)
