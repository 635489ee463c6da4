"""What the workers of a run agree on, and what each of them may do."""

import contextlib
import dataclasses
import os
import tempfile
import zlib

import numpy as np

from trainers.errors import ConfigError, WorkerLostError


def describe(strategy, config):
    """Returns one line on the devices, the batch and the precision in use."""
    replicas = strategy.num_replicas
    parts = config.gradient_accumulation_steps
    each = f"{config.batch_size // replicas} per replica"
    if parts > 1:
        each += f" in {parts} parts"
    return (
        f"{replicas} replica(s), here {', '.join(strategy.devices)}; "
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


def check_same_flags(strategy, config):
    """Raises `ConfigError` if the workers were started with other flags."""
    flags = repr(dataclasses.replace(config, workdir=""))
    if not workers_agree(strategy, flags.encode()):
        raise ConfigError(
            "the workers were started with different flags: give all of them "
            "the same command."
        )


def check_same_data(strategy, problem):
    """Raises `ConfigError` if the workers would read different data."""
    if not workers_agree(strategy, problem.data_digest.encode()):
        raise ConfigError(
            "the workers have different data: give all of them the same files."
        )


def workers_agree(strategy, content):
    """Returns whether all workers have the same bytes."""
    if not strategy.several_workers:
        return True
    # 31 bits of a checksum: JAX's integers have 32 bits by default.
    checksum = np.int32(zlib.crc32(content) >> 1)
    return not strategy.on_any_worker(checksum != strategy.from_chief(checksum))


@contextlib.contextmanager
def refuse_together(strategy):
    """Ends all workers where one of them cannot start, by `ConfigError`."""
    refused = None
    try:
        yield
    except ConfigError as error:
        refused = error
    if strategy.on_any_worker(refused is not None):
        raise refused or ConfigError(
            "another worker cannot start: see its message."
        )


@contextlib.contextmanager
def directory_of_worker(strategy, path):
    """Gives the first worker its directory, every other one a temporary one.

    All workers can then run the same code, and only one writes the files.
    """
    if strategy.is_chief:
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
def watch_workers(strategy):
    """Turns the exception that a lost worker causes into `WorkerLostError`."""
    try:
        yield
    except Exception as error:
        if not (strategy.several_workers and strategy.means_lost_worker(error)):
            raise
        raise WorkerLostError(str(error).strip().splitlines()[0]) from None
