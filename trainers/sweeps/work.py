"""Trains the runs of a sweep: all that each of its workers does.

Imports only the standard library and `datasets.files`: on other machines, Ray
calls these functions in its own processes, without TensorFlow.

A root directory has for each run, by its name:

    runs/NAME        the working directory of the run
    runs/NAME.log    what its command prints
    runs/NAME.json   how its last command ended, see `JobList`
    running/NAME     who trains it, while somebody does

Nobody hands out runs. A worker takes the first one that is open, claims its
file in `running`, trains it, and goes on with the next. Any number of workers,
of any sweeps on any machines, may share a root directory.
"""

import dataclasses
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

from datasets.files import only_files, write_whole
from trainers.records.claims import claim, is_locked, now, read_claim, read_text

LAST_LINES = 20
"""Most lines of a log that a record keeps."""

SECONDS = 0.2
"""Seconds between two looks at the files of a sweep."""

PAUSE = 10
"""Seconds after which a lost run is resumed."""

RECORD_TYPES = {
    "status": int,
    "seconds": (int, float),
    "ended": str,
    "host": str,
    "lines": list,
    "lost": int,
}
"""Types of the fields of a record; a field of another type is ignored."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """The command of a run.

    Attributes:
        name: str. Name of the run.
        root: str. Absolute path of the root directory.
        arguments: Tuple of str. The module, and its flags.
        directory: str. Directory to run the command in.
        environment: Dict of environment variables to set.
        after: `Job` that it continues, or `None`.
    """

    name: str
    root: str
    arguments: tuple
    directory: str
    environment: dict
    after: "Job | None" = None

    @property
    def workdir(self):
        """`pathlib.Path` of the working directory of the run."""
        return pathlib.Path(self.root, "runs", self.name)

    @property
    def log(self):
        """`pathlib.Path` of the file with the output of the command."""
        return self.workdir.with_name(f"{self.name}.log")

    @property
    def claim(self):
        """`pathlib.Path` of the file that says who trains the run."""
        return pathlib.Path(self.root, "running", self.name)

    def has_results(self):
        """Returns whether the run has ended well."""
        return (self.workdir / "results.json").exists()

    def has_failed(self):
        """Returns whether the run failed, or continues one that failed."""
        return has_failed(read_record(self.root, self.name)) or (
            self.after is not None and self.after.has_failed()
        )

    def has_ended(self):
        """Returns whether nobody needs to train the run."""
        return self.has_results() or self.has_failed()

    def can_begin(self):
        """Returns whether the run has not ended, and the one before it has."""
        return not self.has_ended() and (
            self.after is None or self.after.has_results()
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobList:
    """The jobs of a sweep, which any number of workers share.

    Attributes:
        jobs: Tuple of `Job`, in the order in which they begin.
        sweep: str. Path of a file that exists until the sweep is stopped. Then
            the runs save their states and end.
        retries: int. How often a run is resumed after its command was lost,
            that is, ended by a signal or together with its machine.
    """

    jobs: tuple
    sweep: str
    retries: int

    def work(self, environment=None, orphans=None):
        """Trains runs until all have ended, here or elsewhere.

        Writes a record of each: `status`, that of its command, negative for a
        signal; `seconds`, the time of all its commands; `ended`; `host`;
        `lines`, the last ones of the log; and `lost`, how often its command was
        lost.

        Args:
            environment: Dict of further environment variables, or `None`.
            orphans: Dict from the paths of claims to what they say, of commands
                to wait for at first; or `None`.

        Raises:
            OSError: If the files of a run cannot be written.
        """
        for path, about in (orphans or {}).items():
            while read_claim(path) == about and not self.is_stopped():
                time.sleep(SECONDS)
        left = self.jobs
        while left and not self.is_stopped():
            if not any(self._train(job, environment or {}) for job in left):
                time.sleep(SECONDS)
            left = [job for job in left if not job.has_ended()]

    def is_stopped(self):
        """Returns whether no further run may begin."""
        return not os.path.exists(self.sweep)

    def count_running(self):
        """Returns how many commands of this sweep run, not of others."""
        claims = (read_claim(job.claim) for job in self.jobs)
        # A claim that says nothing yet may be of this sweep.
        return sum(
            about is not None and about.get("sweep", self.sweep) == self.sweep
            for about in claims
        )

    def _train(self, job, environment):
        """Trains a run if it can begin; returns whether it did."""
        if not job.can_begin():
            return False
        variables = {**os.environ, **environment}
        about = {
            "sweep": self.sweep,
            "devices": variables.get("CUDA_VISIBLE_DEVICES"),
        }
        with claim(job.claim, about) as claimed:
            if claimed is None or is_locked(job.workdir / "run.lock"):
                return False
            # Under the claim: another worker may have ended the run, and a
            # sweep that is stopped waits for those who hold one.
            if self.is_stopped() or not job.can_begin():
                return False
            record = read_record(job.root, job.name)
            record["lost"] = record.get("lost", 0) + claimed.was_left
            if record["lost"] <= self.retries:
                record = self._run(job, environment, claimed.file, record)
            if record["lost"] > self.retries:
                reason = f"lost {record['lost']} times: {describe_loss(record)}"
                record |= {"status": 1, "ended": now(), "lines": [reason]}
            write_record(job.root, job.name, record)
            if record["status"] < 0 or record["status"] >= 128:
                # Whatever it was may need time to come back.
                self._pause()
            return True

    def _run(self, job, environment, claimed, before):
        """Runs a command to its end and returns the record of the run."""
        job.workdir.parent.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        with open(job.log, "ab", opener=only_files) as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", *job.arguments),
                    f"--workdir={job.workdir}",
                ],
                cwd=job.directory,
                env={**os.environ, **job.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[claimed.fileno()],
                # Ctrl-C reaches only the sweep, which stops its commands.
                start_new_session=True,
            )
            status, was_stopped = self._wait(process)
        lines = _read_last_lines(job.log)
        if status == 0 and not job.has_results():
            status = 1
            lines.append(f"{job.workdir} has no results.json")
        is_lost = not was_stopped and (status < 0 or status >= 128)
        return {
            "status": status,
            "seconds": before.get("seconds", 0) + time.monotonic() - start,
            "ended": now(),
            "host": socket.gethostname(),
            "lines": lines,
            "lost": before["lost"] + is_lost,
        }

    def _wait(self, process):
        """Returns the status of a process, and whether it was stopped."""
        was_stopped = False
        try:
            while True:
                try:
                    return process.wait(SECONDS), was_stopped
                except subprocess.TimeoutExpired:
                    if not was_stopped and self.is_stopped():
                        was_stopped = True
                        process.terminate()
        except BaseException:
            # The run saves a checkpoint.
            process.terminate()
            process.wait()
            raise

    def _pause(self):
        end = time.monotonic() + PAUSE
        while time.monotonic() < end and not self.is_stopped():
            time.sleep(SECONDS)


def has_failed(record):
    """Returns whether a record is of a failure, not of a signal."""
    return 0 < record.get("status", 0) < 128


def describe_loss(record):
    """Returns why a command was lost, a str."""
    status = record.get("status", 0)
    return f"exit status {status}" if status else "its process is gone"


def _read_last_lines(path):
    with open(path, "rb", opener=only_files) as file:
        file.seek(max(0, path.stat().st_size - 10_000))
        text = file.read().decode(errors="replace")
    return [line for line in text.splitlines() if line.strip()][-LAST_LINES:]


def read_record(root, name):
    """Returns the record of a run, without fields that are damaged.

    An empty dict if there is none, or none that can be read as a record.
    """
    try:
        record = json.loads(read_text(_find_record(root, name)))
    except (FileNotFoundError, ValueError):
        return {}
    if not isinstance(record, dict):
        return {}
    return {
        field: value
        for field, value in record.items()
        if isinstance(value, RECORD_TYPES.get(field, object))
    }


def write_record(root, name, record):
    """Writes the record of a run, as a whole or not at all."""
    path = _find_record(root, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_whole(path) as file:
        file.write(f"{json.dumps(record, indent=2)}\n".encode())


def _find_record(root, name):
    return pathlib.Path(root, "runs", f"{name}.json")
