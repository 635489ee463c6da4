"""Data parallelism over all devices of JAX, on one machine or several."""

import contextlib
import os

import jax
import keras
import numpy as np
import tensorflow as tf
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec

from trainers.cluster.strategies import NO_TPU, local_tpus
from trainers.cluster.waiting import wait_for
from trainers.errors import ConfigError


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
