"""A pool of the machines of a Ray cluster.

The root directory and the checkout must be at the same paths on all machines,
as on a shared file system.
"""

import concurrent.futures
import dataclasses
import pathlib
import uuid

import datasets.files
from trainers.errors import ConfigError, TrainingError
from trainers.sweeps import run_process
from trainers.sweeps.local_pool import describe_stopping, make_error
from trainers.sweeps.run_process import find_claim, read_claim


class RayPool:
    """The machines of a Ray cluster.

    Args:
        address: str. Address of the cluster; empty: a cluster of this machine
            alone, for as long as the sweep runs.
        cpus: int. Number of cores that each command needs and uses.
        gpus: int. Number of GPUs that each command needs.
        tpus: int. Number of TPU chips that each command needs.

    Attributes:
        describe: str. The pool in a few words.

    Raises:
        ConfigError: If Ray is not installed, or the cluster does not answer.
    """

    def __init__(self, address="", cpus=1, gpus=0, tpus=0):
        self._ray = ray = _import_ray()
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
        # Its processes need no TensorFlow: they get the functions themselves.
        for module in (run_process, datasets.files):
            ray.cloudpickle.register_pickle_by_value(module)
        self.describe = f"on the Ray cluster {address or 'of this machine'}"
        self._environment = {"TF_NUM_INTRAOP_THREADS": str(cpus)}
        self._task = ray.remote(
            num_cpus=cpus,
            num_gpus=gpus,
            resources={"TPU": tpus} if tpus else None,
            # The sweep submits lost runs again itself.
            max_retries=0,
        )(run_process.run_job)
        self._futures = {}
        self._id = uuid.uuid4().hex
        self._stop = None
        self._needed = {
            name: number
            for name, number in (("CPU", cpus), ("GPU", gpus), ("TPU", tpus))
            if number
        }

    def count_jobs(self):
        """Returns how many commands the cluster has room for, at least 1.

        Says so if it has none yet: machines may join.
        """
        room = sum(
            # A command runs on one machine.
            min(
                int(node["Resources"].get(name, 0) // number)
                for name, number in self._needed.items()
            )
            for node in self._ray.nodes()
            if node["Alive"]
        )
        if not room:
            needed = ", ".join(f"{n} {k}" for k, n in self._needed.items())
            print(
                f"no machine of the Ray cluster has what a run needs "
                f"({needed}): waiting for one that has",
                flush=True,
            )
        return max(1, room)

    def submit(self, job):
        """Starts a `Job` as soon as there is room."""
        self._stop = pathlib.Path(job.root, f"stop-{self._id}")
        job = dataclasses.replace(job, stop=str(self._stop))
        ref = self._task.remote(job, self._environment)
        self._futures[ref.future()] = job

    def wait(self, seconds):
        """Waits and returns as `LocalPool.wait`."""
        done, _ = concurrent.futures.wait(
            self._futures, seconds, concurrent.futures.FIRST_COMPLETED
        )
        return [self._read(future) for future in done]

    def stop(self):
        """Lets all runs save their state, and returns when they have."""
        if not self._futures:
            self._ray.shutdown()
            return
        # `ray.cancel` does not wait for the runs to save.
        self._stop.touch()
        try:
            running = self._count_running()
            if running:
                print(describe_stopping(running), flush=True)
            while self._count_running():
                concurrent.futures.wait(self._futures, timeout=1)
            self._ray.shutdown()
        finally:
            self._stop.unlink()

    def _count_running(self):
        """Returns how many commands of this pool run, not of other sweeps."""
        stop = str(self._stop)
        claims = (read_claim(find_claim(job)) for job in self._futures.values())
        # A claim that says nothing yet may be of this pool.
        return sum(
            about is not None and about.get("stop", stop) == stop
            for about in claims
        )

    def _read(self, future):
        job = self._futures.pop(future)
        exceptions = self._ray.exceptions
        try:
            return job, future.result()
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, OSError):
                raise make_error(job, error.cause) from None
            raise
        except exceptions.LocalRayletDiedError:
            raise TrainingError(
                "the Ray node that the sweep itself is connected to is gone: "
                "run the same command again to resume."
            ) from None
        except exceptions.RayError as error:
            first = str(error).strip().partition("\n")[0]
            return job, {"lost": f"{type(error).__name__}: {first}"}


def _import_ray():
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            f"--engine=ray needs Ray ({error}): pip install -e '.[ray]'."
        ) from None
    return ray
