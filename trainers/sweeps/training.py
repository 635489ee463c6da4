"""Trains the runs of a sweep, and says how far they are.

Workers find their runs by themselves; this process starts workers, and looks at
the files of the root directory.
"""

import os
import pathlib
import time

import trainers
from trainers.devices.interruption import check_received
from trainers.errors import TrainingError
from trainers.records.progress import Table, format_seconds
from trainers.sweeps.root import SweepRoot
from trainers.sweeps.work import describe_loss, has_failed
from trainers.sweeps.workers import open_workers

SECONDS = 1
"""Least seconds between two looks at the root directory."""

LEAST_FAILURES = 3
"""Least number of failures without a success between that end the sweep."""

RETRY = "run the same command with --retry_failed"


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


def train_all(config, root, runs, retry=RETRY, after_each=lambda run: None):
    """Trains runs that are not finished, several at a time.

    It gives up after several failures without a success between, two for each
    of the jobs: they may be due to the machine, which would fail all runs.

    Args:
        config: `SweepConfig`.
        root: The `SweepRoot`.
        runs: Tuple of `Run`, from `list_runs`.
        retry: str. What a user does to start failed runs again.
        after_each: Function of a `Run`, called once it is finished or is found
            to be.

    Raises:
        TrainingError: If runs have failed, after all others have ended.
    """
    with open_workers(config, root, runs) as (jobs, wait):
        progress = Progress(root, runs, jobs, Table(), after_each)
        most = max(LEAST_FAILURES, 2 * jobs)
        start = time.monotonic()
        while progress.look() and progress.failures < most:
            # Ray may have swallowed the error that a signal raised.
            check_received()
            # Thousands of runs, or files over a network, take longer to read.
            wait(max(SECONDS, 10 * (time.monotonic() - start)))
            start = time.monotonic()
    if progress.failed:
        report_failures(root, progress, retry)
    print(f"all {len(runs)} runs are finished")


def report_failures(root, progress, retry):
    """Prints the last lines of the logs of failed runs.

    Args:
        root: The `SweepRoot`.
        progress: The `Progress`. Runs that are left may not have begun.
        retry: str. What a user does to start failed runs again.

    Raises:
        TrainingError: Always.
    """
    for name, lines in progress.failed.items():
        print(f"\n{root.path / 'runs' / name}.log:")
        print("\n".join(f"    {line}" for line in lines[-5:]))
    count = len(progress.failed)
    if progress.left:
        raise TrainingError(
            f"{count} runs failed, see above, the last ones one after "
            "the other: the reason may be this machine, such as a full disk. "
            f"Fix this and {retry}; or run the same command again to go on "
            "with the other runs."
        )
    raise TrainingError(
        f"{count} runs failed, see above: {retry} to start them again."
    )


def measure(config, root, runs):
    """Trains a run of each row until the time of its steps is known.

    The runs save their states and are resumed by the sweep.

    Args:
        config: `SweepConfig`.
        root: The `SweepRoot`.
        runs: Tuple of `Run`.
    """
    rows = {}
    for run in runs:
        if run.after is None:
            rows.setdefault((run.trainer, run.row), []).append(run)
    left = [
        of_row[0]
        for of_row in rows.values()
        if not any(map(root.is_measured, of_row))
    ]
    while left:
        with open_workers(config, root, left) as (jobs, wait):
            begun, left = left[:jobs], left[jobs:]
            for run in begun:
                print(f"measuring {run.row}: {run.name}", flush=True)
            while any(_is_unmeasured(root, run) for run in begun):
                check_received()
                wait(SECONDS)
        for run in begun:
            lines = root.read_record(run).get("lines")
            if lines and root.find_state(run) == "failed":
                print(f"failed: {run.name}: {lines[-1]}")


def _is_unmeasured(root, run):
    """Returns whether the time of a run's steps may still become known."""
    return not root.is_measured(run) and root.find_state(run) in (
        "missing",
        "running",
    )


class Progress:
    """How far the runs of a sweep are, by the files of its root directory.

    Args:
        root: The `SweepRoot`.
        runs: Tuple of `Run`.
        jobs: int. Number of runs that are trained at a time.
        table: `Table` for the progress.
        after_each: Function of a `Run`, called once it is finished or is found
            to be.

    Attributes:
        left: Dict from the names of runs that have not ended to the `Run`.
        failed: Dict from the names of runs that failed, or continue one that
            failed, to the last lines of their logs.
        failures: int. How many runs have failed since one was finished.
    """

    def __init__(self, root, runs, jobs, table, after_each):
        self._root, self._jobs = root, jobs
        self._table, self._after_each = table, after_each
        self._runs = {run.name: run for run in runs}
        self._losses = {}
        self._has_looked = False
        self._seconds_left = ""
        self.left, self.failed, self.failures = dict(self._runs), {}, 0
        for run in runs:
            root.forget_losses(run)

    def look(self):
        """Reads which runs have ended; returns whether runs are left."""
        running = self._root.list_running()
        for run in [*self.left.values()]:
            record = self._root.read_record(run)
            self._show_loss(run, record)
            if run.name not in running:
                self._read(run, record)
        if not self._has_looked:
            self._estimate()
        self._has_looked = True
        self._show(running)
        return bool(self.left)

    def _read(self, run, record):
        """Reads whether a run has ended that nobody trains."""
        workdir = self._root.find_workdir(run)
        if self._root.is_finished(run):
            self._finish(run, record)
        elif has_failed(record):
            self._fail(run, record.get("lines", []))
        elif (workdir / "results.json").exists():
            lines = [
                f"{workdir} has no results of this configuration: move it away."
            ]
            self._root.write_failure(run, lines)
            self._fail(run, lines)
        elif run.after and run.after.name in self.failed:
            self._fail(run, [f"{run.after.name} failed"])

    def _show_loss(self, run, record):
        lost = record.get("lost", 0)
        if lost > self._losses.get(run.name, 0) and not has_failed(record):
            reason = describe_loss(record)
            self._table.add(f"lost, to be resumed: {run.name} ({reason})")
        self._losses[run.name] = lost

    def _finish(self, run, record):
        del self.left[run.name]
        self._root.remove_claim(run)
        self.failures = 0
        if self._has_looked:
            self._estimate()
            self._table.add(
                f"{self._count_finished()}/{len(self._runs)} finished: "
                f"{run.name} ({format_seconds(record.get('seconds', 0))})"
                f"{self._seconds_left}"
            )
        self._after_each(run)

    def _fail(self, run, lines):
        del self.left[run.name]
        self.failed[run.name] = lines
        # Not those of before this sweep.
        self.failures += self._has_looked
        last = lines[-1] if lines else "its log is empty"
        self._table.add(f"failed: {run.name}: {last}")

    def _count_finished(self):
        return len(self._runs) - len(self.left) - len(self.failed)

    def _estimate(self):
        """Updates the text of the time that the runs still need."""
        left = self.left.values()
        seconds, unknown = self._root.estimate(self._runs.values())(left)
        self._seconds_left = (
            f", about {format_seconds(seconds / self._jobs)} left"
            if left and not unknown
            else ""
        )

    def _show(self, running):
        if not self._table.is_shown:
            return
        running = sorted(running & self._runs.keys())
        lines = [
            f"{self._count_finished()}/{len(self._runs)} finished, "
            f"{len(self.failed)} failed, {len(running)} running"
            f"{self._seconds_left}"
        ]
        for name in running:
            run = self._runs[name]
            step, seconds = self._root.find_progress(run)
            steps = self._root.make_config(run).steps
            lines.append(
                f"  step {step:>9,} of {steps:,}, {format_seconds(seconds)}: "
                f"{name}"
            )
        self._table.show(lines)
