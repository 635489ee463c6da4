"""Two workers of one run, both on this machine."""

import contextlib
import json
import random
import socket
import time

from benchmarks.faults.run import Failure
from benchmarks.faults.training_process import TrainingProcess


class Workers:
    """Two workers of one run.

    Args:
        path: Working directory.
        logs: Directory for the output of the workers.
        flags: Flags of the trainer.
    """

    def __init__(self, path, logs, flags):
        self._flags = [*flags, f"--workdir={path}", "--strategy=multi_worker"]
        self._logs = logs
        self._environments = make_environments(2)
        self.processes = [self._start(index) for index in range(2)]

    def _start(self, index):
        return TrainingProcess(
            self._flags,
            self._logs / f"worker-{index}.log",
            fresh=True,
            environment=self._environments[index],
        )

    def restart(self, index):
        """Starts a killed worker again, and every worker that had finished."""
        for other, process in enumerate(self.processes):
            if other == index or process.wait(0) == 0:
                self.processes[other] = self._start(other)

    def statuses(self):
        """Exit statuses of the workers, `None` for each that still runs."""
        return [process.wait(0) for process in self.processes]

    def wait(self, seconds):
        """Waits for the end of all workers; returns whether they ended.

        Raises:
            Failure: If a worker ends with an error.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            statuses = self.statuses()
            if statuses == [0, 0]:
                return True
            for index, status in enumerate(statuses):
                if status:
                    raise Failure(f"worker {index} ended with {status}")
            time.sleep(0.05)
        return False

    def end(self):
        """Kills the workers that still run."""
        for process in self.processes:
            process.end()


def make_environments(workers):
    """Makes the variable TF_CONFIG of each worker, all on this machine."""
    hosts = [f"127.0.0.1:{port}" for port in _find_free_ports(workers)]
    configs = [
        {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": n}}
        for n in range(workers)
    ]
    return [{"TF_CONFIG": json.dumps(config)} for config in configs]


def _find_free_ports(count):
    found = []
    while len(found) < count:
        # Outgoing connections take higher ports.
        port = random.randrange(20_000, 32_000)
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            found.append(port)
    return found
