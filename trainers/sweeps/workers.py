"""The workers of a sweep: threads of this process, or tasks of a Ray cluster.

On Ray, the root directory and the checkout must be at the same paths on all
machines, as on a shared file system.
"""

import collections
import concurrent.futures
import contextlib
import os
import time
import uuid

import datasets.files
from trainers.devices.interruption import (
    end_at_once,
    handle_signals,
    raise_stopped,
)
from trainers.errors import ConfigError, TrainingError
from trainers.records import claims
from trainers.records.files import writing
from trainers.sweeps import work
from trainers.sweeps.work import JobList

SHARED_GPUS = {
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
"""Variables with which several processes can share the memory of a GPU."""


@contextlib.contextmanager
def open_workers(config, root, runs):
    """Starts workers that train runs, which save their states at the end.

    Args:
        config: `SweepConfig`.
        root: The `SweepRoot`.
        runs: Iterable of `Run`.

    Yields:
        Number of runs at a time; and a function that waits for a number of
        seconds, and raises `TrainingError` if a worker cannot go on.

    Raises:
        ConfigError: If there are too few GPUs, or no Ray cluster.
    """
    sweep = root.path / "sweeps" / uuid.uuid4().hex
    job_list = JobList(
        jobs=tuple(map(root.make_job, runs)),
        sweep=str(sweep),
        retries=config.retries,
    )
    orphans = root.list_orphans()
    others = len(root.list_running()) - len(orphans)
    if others > 0:
        print(f"other processes train {others} runs below the same directory")
    if config.engine == "local":
        opened = _open_local(config, job_list, orphans)
    else:
        opened = _open_ray(config, job_list)
    with contextlib.ExitStack() as stack:
        with writing(root.path, "no run is trained"):
            stack.enter_context(claims.claim(sweep))
            for path in sweep.parent.iterdir():
                # What a killed sweep has left.
                if not claims.is_locked(path):
                    path.unlink(missing_ok=True)
        workers, jobs = stack.enter_context(opened)
        print(f"sweep below {root.path}", flush=True)
        # Ray has set a handler of its own.
        handle_signals(raise_stopped)
        try:
            yield jobs, lambda seconds: _wait(workers, seconds, root.path)
        finally:
            # Runs that were asked to save do so without the sweep, too.
            handle_signals(end_at_once)
            sweep.unlink()
            _wait_for_runs(job_list)
            handle_signals(raise_stopped)


def _wait(workers, seconds, path):
    """Waits some seconds, unless a worker could not write its files.

    Raises:
        TrainingError: If it could not.
    """
    done, busy = concurrent.futures.wait(
        workers, seconds, concurrent.futures.FIRST_EXCEPTION
    )
    for future in done:
        try:
            future.result()
        except OSError as error:
            # The text of Ray's error has a traceback.
            raise TrainingError(
                f"cannot train runs below {path}: "
                f"{getattr(error, 'cause', error)}. Fix this and run the same "
                "command again to resume."
            ) from None
    if not busy:
        time.sleep(seconds)


def _wait_for_runs(job_list):
    """Returns when all runs of a sweep that is stopped have saved."""
    running = job_list.count_running()
    if running:
        print(
            f"runs that save their states: {running}; Ctrl-C ends this command "
            "without waiting for them",
            flush=True,
        )
    while job_list.count_running():
        time.sleep(work.SECONDS)


@contextlib.contextmanager
def _open_local(config, job_list, orphans):
    """Yields workers of this machine, which share its cores, and their number.

    A command whose sweep was killed, an orphan, counts as one of the jobs until
    it has ended, on its GPUs if it was started with as many.
    """
    jobs = config.jobs or count_cores()
    environments = list_environments(jobs, config.gpus)
    devices = [each.get("CUDA_VISIBLE_DEVICES") for each in environments]
    before = collections.defaultdict(dict)
    for number, (path, about) in enumerate(orphans.items()):
        known = about.get("devices")
        is_ours = known is not None and known in devices
        worker = devices.index(known) if is_ours else number % jobs
        before[worker][path] = about
    text = f"{jobs} at a time on this machine"
    if orphans:
        text += f", {len(orphans)} of a killed sweep still running"
    print(text)
    with concurrent.futures.ThreadPoolExecutor(jobs) as threads:
        workers = [
            threads.submit(job_list.work, environment, before[worker])
            for worker, environment in enumerate(environments)
        ]
        yield workers, jobs


def list_environments(jobs, gpus):
    """Lists the environment variables of each of the workers of this machine.

    Args:
        jobs: int. Number of workers.
        gpus: int. Number of GPUs of each; 0: all of them see all.

    Raises:
        ConfigError: If CUDA_VISIBLE_DEVICES has too few GPUs for the jobs.
    """
    shared = {"TF_NUM_INTRAOP_THREADS": str(max(1, count_cores() // jobs))}
    if not gpus:
        free = {n: v for n, v in SHARED_GPUS.items() if n not in os.environ}
        return [{**shared, **free}] * jobs
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = visible.split(",") if visible else map(str, range(jobs * gpus))
    names = list(names)
    if len(names) < jobs * gpus:
        raise ConfigError(
            f"{jobs} jobs with {gpus} GPUs each need {jobs * gpus} GPUs; "
            f"CUDA_VISIBLE_DEVICES has {len(names)}: choose fewer --jobs."
        )
    parts = (names[job * gpus : (job + 1) * gpus] for job in range(jobs))
    return [{**shared, "CUDA_VISIBLE_DEVICES": ",".join(p)} for p in parts]


def count_cores():
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


@contextlib.contextmanager
def _open_ray(config, job_list):
    """Yields workers of a Ray cluster, and how many it has room for.

    There are as many workers as runs. Each waits until a machine has room for
    it, also one that joins later.
    """
    ray = _import_ray()
    address = config.address
    try:
        ray.init(
            address or "local",
            log_to_driver=False,
            configure_logging=False,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"no Ray cluster answers at --address={address}: {error}"
        ) from None
    name = f"the Ray cluster {address or 'of this machine'}"
    print(f"on {name}")
    # Its processes need no TensorFlow: they get the functions themselves.
    for module in (work, claims, datasets.files):
        ray.cloudpickle.register_pickle_by_value(module)
    task = ray.remote(
        num_cpus=config.cpus,
        num_gpus=config.gpus,
        resources={"TPU": config.tpus} if config.tpus else None,
        max_retries=config.retries,
    )(JobList.work)
    shared = ray.put(job_list)
    environment = {"TF_NUM_INTRAOP_THREADS": str(config.cpus)}
    try:
        workers = [
            task.remote(shared, environment).future() for _ in job_list.jobs
        ]
        yield workers, _count_room(ray, config)
    except ray.exceptions.RayTaskError:
        raise
    except ray.exceptions.RayError as error:
        first = str(error).strip().partition("\n")[0]
        raise TrainingError(
            f"a worker on {name} was lost ({type(error).__name__}: {first}): "
            "run the same command again to resume."
        ) from None
    finally:
        ray.shutdown()


def _count_room(ray, config):
    """Returns how many runs a cluster has room for, at least 1.

    Says so if it has none yet: machines may join.
    """
    needed = {"CPU": config.cpus, "GPU": config.gpus, "TPU": config.tpus}
    needed = {name: number for name, number in needed.items() if number}
    room = sum(
        # A command runs on one machine.
        min(
            int(node["Resources"].get(name, 0) // number)
            for name, number in needed.items()
        )
        for node in ray.nodes()
        if node["Alive"]
    )
    if not room:
        text = ", ".join(f"{count} {name}" for name, count in needed.items())
        print(
            f"no machine of the Ray cluster has what a run needs ({text}): "
            "waiting for one that has",
            flush=True,
        )
    return max(1, room)


def _import_ray():
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            f"--engine=ray needs Ray ({error}): pip install -e '.[ray]'."
        ) from None
    return ray
