"""Starts the runs of a sweep on a pool, and resumes those that are lost."""

import collections
import time

from trainers.devices.interruption import check_received
from trainers.records.progress import format_seconds
from trainers.sweeps.run_process import has_failed

SECONDS = 1
"""Seconds between two looks at the pool."""

LOOK_AGAIN = 10
"""Seconds until a run that is lost, or run elsewhere, is looked at again."""

LEAST_FAILURES = 3
"""Least number of failures without a success between that end the sweep."""


class Coordinator:
    """Starts the runs that are not finished, and returns when all have ended.

    It gives up after several failures without a success between, two for each
    of the jobs: they may be due to the machine, which would fail all runs.

    Args:
        root: The `SweepRoot`.
        pool: `LocalPool` or `RayPool`.
        runs: Tuple of `Run`, from `list_runs`.
        jobs: int. Number of commands that run at a time.
        retries: int. How often a run is started again after its process was
            lost.
        table: `Table` for the progress.
        after_each: Function of a `Run`, called once it is finished or is found
            to be.

    Attributes:
        finished: Set of the names of finished runs.
        failed: Dict from the names of runs that failed, or continue one that
            failed, to the last lines of their logs.
        gave_up: bool. Whether runs were left that may not have run.
    """

    def __init__(
        self,
        root,
        pool,
        runs,
        *,
        jobs,
        retries,
        table,
        after_each=lambda run: None,
    ):
        self._root = root
        self._pool = pool
        self._runs = {run.name: run for run in runs}
        self._jobs = jobs
        self._retries = retries
        self._table = table
        self._after_each = after_each
        self._waiting = dict(self._runs)
        self._submitted = {}
        self._losses = collections.Counter()
        self._not_before = {}
        self._elsewhere = set()
        self._announced = set()
        self._seconds_left = ""
        self._failures = 0
        self.finished, self.failed = set(), {}
        self.gave_up = False

    def run(self):
        """Returns when every run is finished or has failed, or gives up."""
        for run in self._runs.values():
            self._look(run)
        self._estimate()
        while self._waiting or self._submitted:
            # Ray may have swallowed the error that a signal raised.
            check_received()
            self._submit()
            if not self._submitted:
                time.sleep(SECONDS)
            for job, record in self._pool.wait(SECONDS):
                self._take(self._submitted.pop(job.name), record)
            self._show()
            most = max(LEAST_FAILURES, 2 * self._jobs)
            if self._failures >= most and (self._waiting or self._submitted):
                self.gave_up = True
                break
        self._root.list_running()

    def _look(self, run):
        """Takes a run off the waiting ones if it has ended."""
        state = self._root.find_state(run)
        if state == "finished":
            self.finished.add(run.name)
            del self._waiting[run.name]
            self._after_each(run)
        elif state == "failed":
            self._fail(run, self._root.read_record(run).get("lines", []))
        elif state == "running":
            self._wait_for_others(run)

    def _submit(self):
        for name, run in list(self._waiting.items()):
            if self._is_too_early(name):
                continue
            if name in self._not_before:
                self._look(run)
                if self._is_too_early(name):
                    continue
            if run.after and run.after.name in self.failed:
                self._fail(run, [f"{run.after.name} failed"])
            if name in self._waiting and (
                run.after is None or run.after.name in self.finished
            ):
                self._submitted[name] = self._waiting.pop(name)
                self._pool.submit(self._root.make_job(run))
        elsewhere = self._elsewhere & self._waiting.keys()
        if not self._submitted and elsewhere - self._announced:
            self._announced |= elsewhere
            self._table.add(
                f"waiting for {len(elsewhere)} runs that other processes run"
            )

    def _is_too_early(self, name):
        return time.monotonic() < self._not_before.get(name, 0)

    def _take(self, run, record):
        """Acts on how the process of a run ended."""
        status = record.get("status", -1)
        self._elsewhere.discard(run.name)
        if record.get("busy"):
            self._wait_for_others(run)
        elif has_failed(record):
            self._failures += 1
            self._fail(run, record.get("lines", []))
        elif status != 0:
            self._lose(run, record.get("lost", f"exit status {status}"))
        elif not self._root.is_finished(run):
            lines = [
                f"{self._root.find_workdir(run)} has no results of this "
                "configuration: move it away."
            ]
            self._root.write_failure(run, lines)
            self._fail(run, lines)
        else:
            self._failures = 0
            self.finished.add(run.name)
            self._estimate()
            self._table.add(
                f"{len(self.finished)}/{len(self._runs)} finished: "
                f"{run.name} ({format_seconds(record.get('seconds', 0))})"
                f"{self._seconds_left}"
            )
            self._after_each(run)

    def _wait_for_others(self, run):
        self._elsewhere.add(run.name)
        self._wait(run)

    def _wait(self, run):
        self._waiting[run.name] = run
        self._not_before[run.name] = time.monotonic() + LOOK_AGAIN

    def _lose(self, run, reason):
        self._losses[run.name] += 1
        if self._losses[run.name] > self._retries:
            self._failures += 1
            lines = [f"lost {self._losses[run.name]} times: {reason}"]
            self._root.write_failure(run, lines)
            self._fail(run, lines)
            return
        self._table.add(f"lost, to be resumed: {run.name} ({reason})")
        # Whatever it was may need time to come back.
        self._wait(run)

    def _fail(self, run, lines):
        self._waiting.pop(run.name, None)
        self.failed[run.name] = lines
        last = lines[-1] if lines else "its log is empty"
        self._table.add(f"failed: {run.name}: {last}")

    def _estimate(self):
        """Updates the text of the time that the runs still need."""
        left = [
            run
            for name, run in self._runs.items()
            if name not in self.finished and name not in self.failed
        ]
        seconds, unknown = self._root.estimate(self._runs.values())(left)
        self._seconds_left = (
            f", about {format_seconds(seconds / self._jobs)} left"
            if left and not unknown
            else ""
        )

    def _show(self):
        if not self._table.is_shown:
            return
        running = self._root.list_running() & self._runs.keys()
        lines = [
            f"{len(self.finished)}/{len(self._runs)} finished, "
            f"{len(self.failed)} failed, {len(running)} running"
            f"{self._seconds_left}"
        ]
        for name in sorted(running):
            run = self._runs[name]
            step, seconds = self._root.find_progress(run)
            steps = self._root.make_config(run).steps
            lines.append(
                f"  step {step:>9,} of {steps:,}, {format_seconds(seconds)}: "
                f"{name}"
            )
        self._table.show(lines)
