"""Runs the cells of a sweep in processes of this machine."""

import concurrent.futures
import os
import queue
import threading

from trainers.cluster.cell_process import run_job
from trainers.errors import ConfigError, TrainingError


class LocalPool:
    """A pool of processes of this machine, which share its cores.

    Args:
        jobs: int. Number of commands to run at a time.
        gpus: int. Number of GPUs of each command; 0: it sees all of them.

    Attributes:
        describe: str. The pool in a few words.

    Raises:
        ConfigError: If CUDA_VISIBLE_DEVICES has too few GPUs for the jobs.
    """

    def __init__(self, jobs, gpus=0):
        self.describe = f"{jobs} at a time on this machine"
        self._jobs = jobs
        self._threads = str(max(1, count_cores() // jobs))
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self._futures = {}
        self._processes = set()
        self._stopping = False
        self._lock = threading.Lock()
        self._slots = queue.SimpleQueue()
        for devices in _share_gpus(jobs, gpus):
            self._slots.put(devices)

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
            self._stopping = True
            for process in self._processes:
                process.terminate()
        self._pool.shutdown(cancel_futures=True)

    def _run(self, job):
        devices = self._slots.get()
        environment = {"TF_NUM_INTRAOP_THREADS": self._threads}
        if devices is not None:
            environment["CUDA_VISIBLE_DEVICES"] = devices
        process = None

        def started(its_process):
            nonlocal process
            process = its_process
            with self._lock:
                self._processes.add(process)
                if self._stopping:
                    process.terminate()

        try:
            return run_job(job, environment, started)
        finally:
            with self._lock:
                self._processes.discard(process)
            self._slots.put(devices)


def make_error(job, error):
    """Makes the `TrainingError` of a job whose files cannot be written."""
    return TrainingError(
        f"cannot run {job.name} below {job.root}: {error}. Fix this and run "
        "the same command again to resume."
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
        own = names[job * gpus : (job + 1) * gpus]
        yield ",".join(own) if gpus else None
