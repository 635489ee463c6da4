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


class Coordinator:
    """Runs cells that are not finished until all have ended.

    Args:
        root: The `SweepRoot`.
        pool: `LocalPool` or `RayPool`.
        cells: Tuple of `Cell`, from `list_runs`.
        jobs: int. Number of commands that run at a time, for the time left.
        retries: int. How often a cell is started again after its process was
            lost.
        table: `Table` for the progress.

    Attributes:
        finished: Set of the names of finished cells.
        failed: Dict from the names of cells that failed, or continue one that
            failed, to the last lines of their logs.
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
        self._seconds_left = ""
        self.finished, self.failed = set(), {}

    def run(self):
        """Returns when every cell is finished or has failed."""
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
        self._root.list_running()

    def _look(self, cell):
        """Takes a cell off the waiting ones if it has ended."""
        state = self._root.find_state(cell)
        if state == "finished":
            self.finished.add(cell.name)
            del self._waiting[cell.name]
        elif state == "failed":
            self._fail(cell, self._root.read_record(cell).get("lines", []))

    def _submit(self):
        for name, cell in list(self._waiting.items()):
            if time.monotonic() < self._not_before.get(name, 0):
                continue
            if name in self._not_before:
                self._look(cell)
            if cell.after and cell.after.name in self.failed:
                self._fail(cell, [f"{cell.after.name} failed"])
            if name in self._waiting and (
                cell.after is None or cell.after.name in self.finished
            ):
                self._submitted[name] = self._waiting.pop(name)
                self._pool.submit(self._root.make_job(cell))

    def _take(self, cell, record):
        """Acts on how the process of a cell ended."""
        status = record.get("status", -1)
        if record.get("busy"):
            self._wait(cell)
        elif has_failed(record):
            self._fail(cell, record["lines"])
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
            self.finished.add(cell.name)
            self._estimate()
            self._table.add(
                f"{len(self.finished)}/{len(self._cells)} finished: "
                f"{cell.name} ({format_seconds(record['seconds'])})"
                f"{self._seconds_left}"
            )

    def _wait(self, cell):
        self._waiting[cell.name] = cell
        self._not_before[cell.name] = time.monotonic() + LOOK_AGAIN

    def _lose(self, cell, reason):
        self._losses[cell.name] += 1
        if self._losses[cell.name] > self._retries:
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
