"""Data parallelism by `tf.distribute`, on one machine or several."""

import functools
import importlib.metadata
import json
import os
import re

import numpy as np
import tensorflow as tf

from trainers.devices.strategy import NO_TPU, Strategy, find_local_tpus
from trainers.devices.waiting import unreachable, wait_for
from trainers.errors import ConfigError, WorkerLostError

# Raised by the remaining workers when one is gone, and by one that comes back
# before they have noticed.
_LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)


class TensorFlowStrategy(Strategy):
    """The devices of a `tf.distribute` strategy.

    Args:
        distribution: `tf.distribute.Strategy`.

    Attributes:
        distribution: The same.
        on_tpu: bool. Whether `distribution.run` compiles all that a replica
            computes, so that nothing within may ask for XLA.
    """

    def __init__(self, distribution):
        self.distribution = distribution
        self.num_replicas = distribution.num_replicas_in_sync
        self.several_workers = isinstance(
            distribution, tf.distribute.MultiWorkerMirroredStrategy
        )
        self.is_chief = (
            not self.several_workers
            or distribution.cluster_resolver.task_id == 0
        )
        self.on_tpu = isinstance(distribution, tf.distribute.TPUStrategy)
        self._sum = tf.function(self._sum_over_replicas)

    @property
    def devices(self):
        return self.distribution.extended.worker_devices

    def scope(self):
        return self.distribution.scope()

    def from_chief(self, values):
        if not self.several_workers:
            return values
        flat = [np.asarray(value) for value in tf.nest.flatten(values)]
        # Truth values cannot be summed.
        summed = self._sum([value + 0 for value in flat], first_only=True)
        return tf.nest.pack_sequence_as(
            values,
            [
                self.local_result(total).numpy().astype(value.dtype)
                for total, value in zip(summed, flat, strict=True)
            ],
        )

    def on_any_worker(self, flag):
        if not self.several_workers:
            return flag
        (count,) = self._sum([int(flag)], first_only=False)
        return self.local_result(count).numpy() > 0

    def means_lost_worker(self, error):
        return _means_lost_worker(error)

    def local_result(self, values):
        """Returns the value of one replica of this process."""
        return self.distribution.experimental_local_results(values)[0]

    def _sum_over_replicas(self, values, first_only):
        """Adds up arrays of all replicas, or takes the first replica's."""

        def on_replica(values):
            context = tf.distribute.get_replica_context()
            replica = context.replica_id_in_sync_group
            counts = replica == 0 if first_only else replica >= 0
            # One by one, as their types differ.
            return [
                context.all_reduce(
                    tf.distribute.ReduceOp.SUM,
                    tf.where(counts, value, tf.zeros_like(value)),
                )
                for value in values
            ]

        return self.distribution.run(on_replica, args=(values,))


def make_strategy(name, tpu="local"):
    """Makes the strategy of a name.

    A strategy of several devices is made once: later calls return the same
    object. A strategy of several workers must be made before anything is
    computed.

    Args:
        name: `"one_device"`: the first GPU, or else the CPU. `"mirrored"`: all
            GPUs, or else all logical CPU devices. `"multi_worker"`: those of
            all processes that the environment variable TF_CONFIG lists.
            `"tpu"`: all chips of a TPU. `"auto"`: multi_worker where
            TF_CONFIG is set, mirrored where there are several GPUs, one
            device otherwise.
        tpu: `"local"` for the TPU of this machine, or the name or address of
            another one.

    Returns:
        A `TensorFlowStrategy`.

    Raises:
        ConfigError: If the machine lacks the devices.
        WorkerLostError: If another worker went away meanwhile.
    """
    if name == "auto" and os.environ.get("TF_CONFIG"):
        name = "multi_worker"
    if name == "multi_worker":
        return _make_multi_worker(os.environ.get("TF_CONFIG", ""))
    if name == "tpu":
        return _make_tpu(tpu)
    _check_alone(name)
    devices = [device.name for device in tf.config.list_logical_devices("GPU")]
    if name == "auto":
        name = "mirrored" if len(devices) > 1 else "one_device"
    if not devices:
        devices = [
            device.name for device in tf.config.list_logical_devices("CPU")
        ]
    if name == "one_device":
        return TensorFlowStrategy(tf.distribute.OneDeviceStrategy(devices[0]))
    if len(devices) < 2:
        raise ConfigError(
            "--strategy=mirrored needs at least two devices; this machine "
            f"shows {len(devices)}: use --strategy=one_device."
        )
    return _make_mirrored(tuple(devices))


# These are made once a process: the collective operations of a second mirrored
# strategy of the same devices would take up the keys of the first, and a TPU
# that is initialized again loses its memory.
@functools.cache
def _make_mirrored(devices):
    return TensorFlowStrategy(tf.distribute.MirroredStrategy(devices))


@functools.cache
def _make_multi_worker(text):
    workers, index = _parse_cluster(text)
    address = workers[index]
    print(
        f"worker {index} of {len(workers)}, at {address}: waiting for all",
        flush=True,
    )
    try:
        wait_for([w for w in workers if w != address], address)
    except (OSError, OverflowError, ValueError) as error:
        raise ConfigError(
            f"this worker cannot be reached at {address}, its address in "
            f"TF_CONFIG: {str(error).rstrip('.')}."
        ) from None
    try:
        distribution = tf.distribute.MultiWorkerMirroredStrategy()
    except tf.errors.OpError as error:
        if not _means_lost_worker(error):
            raise
        raise WorkerLostError(str(error).strip().splitlines()[0]) from None
    return TensorFlowStrategy(distribution)


def _means_lost_worker(error):
    if isinstance(error, tf.errors.FailedPreconditionError):
        # Raised where a worker was back before the others noticed its loss.
        return bool(re.search("incarnation|has restarted", error.message))
    return isinstance(error, _LOST)


def _parse_cluster(text):
    """Returns the addresses of all workers, and the index of this one."""
    example = (
        '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, '
        '"task": {"type": "worker", "index": 0}}'
    )
    try:
        config = json.loads(text)
        workers = config["cluster"]["worker"]
        task = config["task"]
        if not 0 <= int(task["index"]) < len(workers):
            raise ValueError
        if task["type"] != "worker" or set(config["cluster"]) != {"worker"}:
            raise ValueError
        if not isinstance(workers, list):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise ConfigError(
            "--strategy=multi_worker needs the environment variable TF_CONFIG, "
            f"with its own index in each worker, as {example}; got {text!r}."
        ) from None
    return workers, int(task["index"])


def _check_alone(name):
    try:
        workers = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]
    except (KeyError, TypeError, ValueError):
        return
    if isinstance(workers, list) and len(workers) > 1:
        raise ConfigError(
            f"TF_CONFIG lists {len(workers)} workers, each of which would "
            f"train alone with --strategy={name}: use multi_worker, or unset "
            "TF_CONFIG."
        )


@functools.cache
def _make_tpu(address):
    if address == "local":
        _check_local_tpu()
    reason = ""
    if address.startswith("grpc://"):
        # TensorFlow itself would wait without end.
        reason = unreachable(address.removeprefix("grpc://"))
    try:
        if reason:
            raise OSError(reason)
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(address)
        if address != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (tf.errors.OpError, ValueError, RuntimeError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"--tpu={address} cannot be reached: {reason}. Expected local, the "
            "name of a TPU of this project, or an address as grpc://host:8470."
        ) from None
    return TensorFlowStrategy(tf.distribute.TPUStrategy(resolver))


def _check_local_tpu():
    try:
        importlib.metadata.version("tensorflow-tpu")
    except importlib.metadata.PackageNotFoundError:
        raise ConfigError(
            "--strategy=tpu needs the TensorFlow wheel for TPUs; this is "
            f"another one, of TensorFlow {tf.__version__}: in a fresh "
            "environment, pip install -e '.[tpu]'. For TPUs newer than v5 "
            "use KERAS_BACKEND=jax."
        ) from None
    if not find_local_tpus():
        raise ConfigError(NO_TPU)
