"""Runs all cells of a sweep on a pool."""

import collections
import time

from trainers.cluster.cell_process import has_failed
from trainers.cluster.interruption import check_received
from trainers.records.progress import format_seconds

SECONDS = 1
"""Seconds between two looks at the pool."""

LOOK_AGAIN = 10
"""Seconds until a cell that is lost, or run elsewhere, is looked at again."""

LEAST_FAILURES = 3
"""Least number of failures without a success between that end the sweep."""


class Coordinator:
    """Runs cells that are not finished until all have ended.

    It gives up after several failures without a success between, two for each
    of the jobs: they may be due to the machine, which would fail all cells.

    Args:
        root: The `SweepRoot`.
        pool: `LocalPool` or `RayPool`.
        cells: Tuple of `Cell`, from `list_runs`.
        jobs: int. Number of commands that run at a time.
        retries: int. How often a cell is started again after its process was
            lost.
        table: `Table` for the progress.

    Attributes:
        finished: Set of the names of finished cells.
        failed: Dict from the names of cells that failed, or continue one that
            failed, to the last lines of their logs.
        gave_up: bool. Whether cells were left that may not have run.
    """

    def __init__(self, root, pool, cells, *, jobs, retries, table):
        self._root = root
        self._pool = pool
        self._cells = {cell.name: cell for cell in cells}
        self._jobs = jobs
        self._retries = retries
        self._table = table
        self._waiting = dict(self._cells)
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
        """Returns when every cell is finished or has failed, or gives up."""
        for cell in self._cells.values():
            self._look(cell)
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

    def _look(self, cell):
        """Takes a cell off the waiting ones if it has ended."""
        state = self._root.find_state(cell)
        if state == "finished":
            self.finished.add(cell.name)
            del self._waiting[cell.name]
        elif state == "failed":
            self._fail(cell, self._root.read_record(cell).get("lines", []))
        elif state == "running":
            self._wait_for_others(cell)

    def _submit(self):
        for name, cell in list(self._waiting.items()):
            if self._is_too_early(name):
                continue
            if name in self._not_before:
                self._look(cell)
                if self._is_too_early(name):
                    continue
            if cell.after and cell.after.name in self.failed:
                self._fail(cell, [f"{cell.after.name} failed"])
            if name in self._waiting and (
                cell.after is None or cell.after.name in self.finished
            ):
                self._submitted[name] = self._waiting.pop(name)
                self._pool.submit(self._root.make_job(cell))
        elsewhere = self._elsewhere & self._waiting.keys()
        if not self._submitted and elsewhere - self._announced:
            self._announced |= elsewhere
            self._table.add(
                f"waiting for {len(elsewhere)} cells that other processes run"
            )

    def _is_too_early(self, name):
        return time.monotonic() < self._not_before.get(name, 0)

    def _take(self, cell, record):
        """Acts on how the process of a cell ended."""
        status = record.get("status", -1)
        self._elsewhere.discard(cell.name)
        if record.get("busy"):
            self._wait_for_others(cell)
        elif has_failed(record):
            self._failures += 1
            self._fail(cell, record.get("lines", []))
        elif status != 0:
            self._lose(cell, record.get("lost", f"exit status {status}"))
        elif not self._root.is_finished(cell):
            lines = [
                f"{self._root.find_workdir(cell)} has no results of this "
                "configuration: move it away."
            ]
            self._root.write_failure(cell, lines)
            self._fail(cell, lines)
        else:
            self._failures = 0
            self.finished.add(cell.name)
            self._estimate()
            self._table.add(
                f"{len(self.finished)}/{len(self._cells)} finished: "
                f"{cell.name} ({format_seconds(record.get('seconds', 0))})"
                f"{self._seconds_left}"
            )

    def _wait_for_others(self, cell):
        self._elsewhere.add(cell.name)
        self._wait(cell)

    def _wait(self, cell):
        self._waiting[cell.name] = cell
        self._not_before[cell.name] = time.monotonic() + LOOK_AGAIN

    def _lose(self, cell, reason):
        self._losses[cell.name] += 1
        if self._losses[cell.name] > self._retries:
            self._failures += 1
            lines = [f"lost {self._losses[cell.name]} times: {reason}"]
            self._root.write_failure(cell, lines)
            self._fail(cell, lines)
            return
        self._table.add(f"lost, to be resumed: {cell.name} ({reason})")
        # Whatever it was may need time to come back.
        self._wait(cell)

    def _fail(self, cell, lines):
        self._waiting.pop(cell.name, None)
        self.failed[cell.name] = lines
        last = lines[-1] if lines else "its log is empty"
        self._table.add(f"failed: {cell.name}: {last}")

    def _estimate(self):
        """Updates the text of the time that the cells still need."""
        left = [
            cell
            for name, cell in self._cells.items()
            if name not in self.finished and name not in self.failed
        ]
        seconds, unknown = self._root.estimate(self._cells.values())(left)
        self._seconds_left = (
            f", about {format_seconds(seconds / self._jobs)} left"
            if left and not unknown
            else ""
        )

    def _show(self):
        if not self._table.is_shown:
            return
        running = self._root.list_running() & self._cells.keys()
        lines = [
            f"{len(self.finished)}/{len(self._cells)} finished, "
            f"{len(self.failed)} failed, {len(running)} running"
            f"{self._seconds_left}"
        ]
        for name in sorted(running):
            cell = self._cells[name]
            step, seconds = self._root.find_progress(cell)
            steps = self._root.make_config(cell).steps
            lines.append(
                f"  step {step:>9,} of {steps:,}, {format_seconds(seconds)}: "
                f"{name}"
            )
        self._table.show(lines)
