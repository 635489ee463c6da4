"""A pool of processes of this machine."""

import concurrent.futures
import os
import threading
import time

from trainers.errors import ConfigError, TrainingError
from trainers.sweeps.run_process import read_claim, run_job

SHARED_GPUS = {
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
"""Variables with which several processes can share the memory of a GPU."""

SECONDS = 1
"""Seconds between two looks at the command of a killed sweep."""


class LocalPool:
    """A pool of processes of this machine, which share its cores.

    Args:
        jobs: int. Number of commands to run at a time.
        gpus: int. Number of GPUs of each command; 0: it sees all of them.
        orphans: Tuple of `pathlib.Path`. Claims of commands of this machine
            whose sweep was killed. Each counts as one of the jobs until it has
            ended, on its GPUs if it was started with as many.

    Attributes:
        describe: str. The pool in a few words.

    Raises:
        ConfigError: If CUDA_VISIBLE_DEVICES has too few GPUs for the jobs.
    """

    def __init__(self, jobs, gpus=0, orphans=()):
        self.describe = f"{jobs} at a time on this machine"
        if orphans:
            self.describe += f", {len(orphans)} of a killed sweep still running"
        self._jobs = jobs
        self._environment = {
            "TF_NUM_INTRAOP_THREADS": str(max(1, count_cores() // jobs))
        }
        if not gpus:
            self._environment |= {
                name: value
                for name, value in SHARED_GPUS.items()
                if name not in os.environ
            }
        self._slots = list(_share_gpus(jobs, gpus))
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self._futures = {}
        self._processes = set()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        for path in orphans:
            about = read_claim(path) or {}
            # Taken here, before a command may take the GPUs of the orphan.
            slot = self._take_slot(about.get("devices")) if self._slots else ""
            self._pool.submit(self._wait_for_orphan, path, about, slot)

    def count_jobs(self):
        """Returns how many commands run at a time."""
        return self._jobs

    def submit(self, job):
        """Starts a `Job` as soon as there is room."""
        self._futures[self._pool.submit(self._run, job)] = job

    def wait(self, seconds):
        """Waits until a job has ended, but no longer than some seconds.

        Returns:
            List of pairs of a `Job` and its record, as `run_job` returns it;
            `{"lost": reason}` if the machine of the job is gone.
        """
        done, _ = concurrent.futures.wait(
            self._futures, seconds, concurrent.futures.FIRST_COMPLETED
        )
        return [self._read(future) for future in done]

    def _read(self, future):
        job = self._futures.pop(future)
        try:
            return job, future.result()
        except OSError as error:
            raise make_error(job, error) from None

    def stop(self):
        """Lets all runs save their state, and returns when they have."""
        with self._lock:
            self._stopping.set()
            for process in self._processes:
                process.terminate()
            if self._processes:
                print(describe_stopping(len(self._processes)), flush=True)
        self._pool.shutdown(wait=False, cancel_futures=True)
        # A signal that comes just before a wait is handled after it.
        while not all(future.done() for future in self._futures):
            time.sleep(0.1)

    def _wait_for_orphan(self, path, about, slot):
        """Keeps a slot until a command that another sweep started has ended.

        Args:
            path: `pathlib.Path` of its claim.
            about: Dict, the content of the claim; empty: it has ended.
            slot: The slot; `""`: all were taken, it takes the next one.
        """
        if slot == "":
            slot = self._take_slot(about.get("devices"))
        while about and about == read_claim(path):
            if self._stopping.wait(SECONDS):
                return
        with self._lock:
            self._slots.append(slot)

    def _take_slot(self, devices=None):
        """Takes the slot of these devices if it is free, or another one.

        There are as many slots as threads.
        """
        with self._lock:
            wanted = devices if devices in self._slots else self._slots[0]
            self._slots.remove(wanted)
            return wanted

    def _run(self, job):
        devices = self._take_slot()
        environment = dict(self._environment)
        if devices is not None:
            environment["CUDA_VISIBLE_DEVICES"] = devices
        process = None

        def started(its_process):
            nonlocal process
            process = its_process
            with self._lock:
                self._processes.add(process)
                if self._stopping.is_set():
                    process.terminate()

        try:
            return run_job(job, environment, started)
        finally:
            with self._lock:
                self._processes.discard(process)
                self._slots.append(devices)


def make_error(job, error):
    """Makes the `TrainingError` of a job whose files cannot be written."""
    return TrainingError(
        f"cannot run {job.name} below {job.root}: {error}. Fix this and run "
        "the same command again to resume."
    )


def describe_stopping(count):
    """Returns what a pool says while it waits for its runs to save."""
    return (
        f"runs that save their states: {count}; Ctrl-C ends this command "
        "without waiting for them"
    )


def count_cores():
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _share_gpus(jobs, gpus):
    """Yields the value of CUDA_VISIBLE_DEVICES of each job, or `None`."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    named = visible.split(",") if visible else map(str, range(jobs * gpus))
    names = list(named)
    if len(names) < jobs * gpus:
        raise ConfigError(
            f"{jobs} jobs with {gpus} GPUs each need {jobs * gpus} GPUs; "
            f"CUDA_VISIBLE_DEVICES has {len(names)}: choose fewer --jobs."
        )
    for job in range(jobs):
        of_job = names[job * gpus : (job + 1) * gpus]
        yield ",".join(of_job) if gpus else None
