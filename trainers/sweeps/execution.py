"""Trains the runs of a sweep: opens its root directory and a pool."""

import contextlib
import os
import pathlib

import trainers
from trainers.devices.interruption import (
    end_at_once,
    handle_signals,
    raise_stopped,
)
from trainers.errors import TrainingError
from trainers.records.progress import Table
from trainers.sweeps.coordinator import Coordinator
from trainers.sweeps.local_pool import LocalPool, count_cores
from trainers.sweeps.ray_pool import RayPool
from trainers.sweeps.root import SweepRoot


def open_root(path, arguments=None):
    """Opens the root directory of a sweep of this checkout's trainers.

    Args:
        path: `pathlib.Path` of the directory, which need not exist.
        arguments: Dict from names of flags to values that every command gets
            and no result depends on, or `None`.

    Returns:
        A `SweepRoot`.
    """
    checkout = str(pathlib.Path(trainers.__file__).parents[1])
    paths = [checkout, os.environ.get("PYTHONPATH", "")]
    return SweepRoot(
        path,
        arguments=arguments or {},
        directory=os.getcwd(),
        environment={"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )


@contextlib.contextmanager
def open_pool(config, root):
    """Yields a pool, whose runs save their states at the end.

    Args:
        config: `SweepConfig`.
        root: The `SweepRoot`.
    """
    if config.engine == "local":
        jobs = config.jobs or count_cores()
        pool = LocalPool(jobs, config.gpus, root.list_orphans())
    else:
        pool = RayPool(config.address, config.cpus, config.gpus, config.tpus)
        # Ray has set a handler of its own.
        handle_signals(raise_stopped)
    print(f"{pool.describe}, below {root.path}", flush=True)
    try:
        yield pool
    finally:
        # Runs that were asked to save do so without the sweep, too.
        handle_signals(end_at_once)
        pool.stop()
        handle_signals(raise_stopped)


RETRY = "run the same command with --retry_failed=true"


def train_all(config, root, runs, retry=RETRY, **options):
    """Trains runs that are not finished, several at a time.

    Args:
        config: `SweepConfig`.
        root: The `SweepRoot`.
        runs: Tuple of `Run`, from `list_runs`.
        retry: str. What a user does to start failed runs again.
        **options: `after_each` of the `Coordinator`.

    Raises:
        TrainingError: If runs have failed, after all others have ended.
    """
    with open_pool(config, root) as pool:
        coordinator = Coordinator(
            *(root, pool, runs),
            jobs=pool.count_jobs(),
            retries=config.retries,
            table=Table(),
            **options,
        )
        coordinator.run()
    if coordinator.failed:
        report_failures(
            root, coordinator.failed, coordinator.gave_up, retry=retry
        )
    print(f"all {len(runs)} runs are finished")


def report_failures(root, failed, gave_up=False, *, retry=RETRY):
    """Prints the last lines of the logs of failed runs.

    Args:
        root: The `SweepRoot`.
        failed: Dict from the names of failed runs to lines of their logs.
        gave_up: bool. Whether runs were left that may not have been started.
        retry: str. What a user does to start failed runs again.

    Raises:
        TrainingError: Always.
    """
    for name, lines in failed.items():
        print(f"\n{root.path / 'runs' / name}.log:")
        print("\n".join(f"    {line}" for line in lines[-5:]))
    if gave_up:
        raise TrainingError(
            f"{len(failed)} runs failed, see above, the last ones one after "
            "the other: the reason may be this machine, such as a full disk. "
            f"Fix this and {retry}; or run the same command again to go on "
            "with the other runs."
        )
    raise TrainingError(
        f"{len(failed)} runs failed, see above: {retry} to start them again."
    )
