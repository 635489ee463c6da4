"""Strategies: which devices a trainer runs on, on how many machines."""

import contextlib
import dataclasses
import functools
import glob
import importlib.metadata
import json
import os
import tempfile
import zlib

import numpy as np
import tensorflow as tf

from trainers.cluster.waiting import unreachable, wait_for
from trainers.errors import ConfigError, WorkerLostError

NO_TPU = (
    "--strategy=tpu found no TPU: this machine has neither /dev/accel* nor "
    "/dev/vfio/*. Run it on a TPU VM; TensorFlow also takes the name or the "
    "address of a TPU elsewhere by --tpu."
)

# What the surviving workers see of one that is gone, and one that comes back
# before they have noticed.
_LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)


# JAX has no class of its own for that.
_LOST_TEXT = "Gloo"


def make_strategy(name, tpu="local"):
    """The `tf.distribute` strategy of a name.

    One of several devices is made once: later calls get the same object. That
    of several workers must be made before anything is computed.

    Args:
        name: `"one_device"`: the first GPU, or else the CPU. `"mirrored"`: all
            GPUs, or else all logical CPU devices. `"multi_worker"`: those of
            all processes that the environment variable TF_CONFIG lists.
            `"tpu"`: all chips of a TPU. `"auto"`: multi_worker where
            TF_CONFIG is set, mirrored where there are several GPUs, one
            device otherwise.
        tpu: `"local"` for the TPU of this machine, or the name or address of
            another one.

    Raises:
        ConfigError: If the machine lacks the devices.
        WorkerLostError: If another worker went away meanwhile.
    """
    if name == "auto" and os.environ.get("TF_CONFIG"):
        name = "multi_worker"
    if name == "multi_worker":
        return _multi_worker(os.environ.get("TF_CONFIG", ""))
    if name == "tpu":
        return _tpu(tpu)
    _check_alone(name)
    devices = [device.name for device in tf.config.list_logical_devices("GPU")]
    if name == "auto":
        name = "mirrored" if len(devices) > 1 else "one_device"
    if not devices:
        devices = [
            device.name for device in tf.config.list_logical_devices("CPU")
        ]
    if name == "one_device":
        return tf.distribute.OneDeviceStrategy(devices[0])
    if len(devices) < 2:
        raise ConfigError(
            "--strategy=mirrored needs at least two devices; this machine "
            f"shows {len(devices)}: use --strategy=one_device."
        )
    return _mirrored(tuple(devices))


# These are made once a process: the collective operations of a second mirrored
# strategy of the same devices would take up the keys of the first, and a TPU
# that is initialized again loses its memory.
@functools.cache
def _mirrored(devices):
    return tf.distribute.MirroredStrategy(devices)


@functools.cache
def _multi_worker(text):
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
    own = workers[int(task["index"])]
    print(
        f"worker {task['index']} of {len(workers)}, at {own}: waiting for all",
        flush=True,
    )
    others = [worker for worker in workers if worker != own]
    try:
        wait_for(others, own)
    except (OSError, OverflowError, ValueError) as error:
        raise ConfigError(
            f"this worker cannot be reached at {own}, its address in "
            f"TF_CONFIG: {str(error).rstrip('.')}."
        ) from None
    with watch_workers():
        return tf.distribute.MultiWorkerMirroredStrategy()


def _check_alone(name):
    try:
        workers = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]
    except (KeyError, TypeError, ValueError):
        return
    if isinstance(workers, list) and len(workers) > 1:
        raise ConfigError(
            f"TF_CONFIG lists {len(workers)} workers, of which each would "
            f"train alone with --strategy={name}: use multi_worker, or unset "
            "TF_CONFIG."
        )


@functools.cache
def _tpu(address):
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
    return tf.distribute.TPUStrategy(resolver)


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
    if not local_tpus():
        raise ConfigError(NO_TPU)


def local_tpus():
    """The device files of the TPU chips of this machine."""
    return glob.glob("/dev/accel*") + glob.glob("/dev/vfio/[0-9]*")


def describe(strategy, config):
    """One line on the devices, the batch and the precision in use."""
    replicas = strategy.num_replicas_in_sync
    devices = devices_of(strategy)
    parts = config.gradient_accumulation_steps
    each = f"{config.batch_size // replicas} per replica"
    if parts > 1:
        each += f" in {parts} parts"
    return (
        f"{replicas} replica(s), here {', '.join(devices)}; "
        f"global batch {config.batch_size}, {each}; {config.precision}"
    )


def check_share(replicas, config):
    """Raises `ConfigError` unless the replicas can share a global batch."""
    parts = config.gradient_accumulation_steps
    if config.batch_size % (replicas * parts):
        also = f", each in {parts} parts" if parts > 1 else ""
        raise ConfigError(
            f"{replicas} replica(s) cannot share a global batch of "
            f"{config.batch_size} examples equally{also}: choose a "
            f"--batch_size that is a multiple of {replicas * parts}."
        )


def several_workers(strategy):
    """Whether other processes train with this one."""
    if not _of_tensorflow(strategy):
        return strategy.several_workers
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def _of_tensorflow(strategy):
    return isinstance(strategy, tf.distribute.Strategy)


def devices_of(strategy):
    """Names of the devices that this process computes on."""
    if not _of_tensorflow(strategy):
        return strategy.worker_devices
    return strategy.extended.worker_devices


def is_chief(strategy):
    """Whether this process writes the files of the run."""
    if not several_workers(strategy):
        return True
    if not _of_tensorflow(strategy):
        return strategy.is_chief
    return strategy.cluster_resolver.task_id == 0


@contextlib.contextmanager
def directory_of_worker(strategy, path):
    """The directory that a worker writes to: but for one, it is thrown away."""
    if is_chief(strategy):
        yield path
        return
    print("the first worker reports and writes the files", flush=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        yield scratch


@contextlib.contextmanager
def watch_workers(strategy=None):
    """Turns what is seen of a lost worker into a `WorkerLostError`."""
    try:
        yield
    except (*_LOST, *getattr(strategy, "lost", ())) as error:
        alone = strategy is not None and not several_workers(strategy)
        if alone or not (isinstance(error, _LOST) or _LOST_TEXT in str(error)):
            raise
        raise WorkerLostError(str(error).strip().splitlines()[0]) from None


def from_chief(strategy, values):
    """The arrays of the first worker, on every worker.

    Args:
        strategy: The strategy.
        values: Structure of arrays, of equal shapes on all workers.
    """
    if not several_workers(strategy):
        return values
    if not _of_tensorflow(strategy):
        return strategy.from_chief(values)
    flat = [np.asarray(value) for value in tf.nest.flatten(values)]
    summing = _sum_over_workers(strategy, first_only=True)
    # Truth values cannot be summed.
    summed = summing([value + 0 for value in flat])
    return tf.nest.pack_sequence_as(
        values,
        [
            strategy.experimental_local_results(total)[0]
            .numpy()
            .astype(value.dtype)
            for total, value in zip(summed, flat, strict=True)
        ],
    )


def on_any_worker(strategy, flag):
    """Whether a flag is set on some worker."""
    if not several_workers(strategy):
        return flag
    if not _of_tensorflow(strategy):
        return strategy.on_any_worker(flag)
    (count,) = _sum_over_workers(strategy, first_only=False)([int(flag)])
    return strategy.experimental_local_results(count)[0].numpy() > 0


def workers_agree(strategy, content):
    """Whether all workers have the same bytes."""
    # 31 bits of a sum: JAX has no larger integers, by default.
    own = np.int32(zlib.crc32(content) >> 1)
    return not on_any_worker(strategy, own != from_chief(strategy, own))


def check_same_flags(strategy, config):
    """Raises `ConfigError` if the workers were started with other flags."""
    flags = repr(dataclasses.replace(config, workdir=""))
    if not workers_agree(strategy, flags.encode()):
        raise ConfigError(
            "the workers were started with different flags: give all of them "
            "the same command."
        )


@functools.cache
def _sum_over_workers(strategy, first_only):
    """A function that adds up arrays of all replicas, or takes the first's."""

    def on_replica(values):
        context = tf.distribute.get_replica_context()
        replica = context.replica_id_in_sync_group
        counts = tf.equal(replica, 0) if first_only else tf.greater(replica, -1)
        # One by one, as their types differ.
        return [
            context.all_reduce(
                tf.distribute.ReduceOp.SUM,
                tf.where(counts, value, tf.zeros_like(value)),
            )
            for value in values
        ]

    return tf.function(lambda values: strategy.run(on_replica, args=(values,)))
