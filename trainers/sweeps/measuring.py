"""Measures how long the steps of a sweep's runs take; no step is lost."""

import collections

SECONDS = 1
"""Seconds between two looks at the pool."""


def measure(root, open_pool, runs):
    """Starts a run of each row until the time of its steps is known.

    The runs save their states and are resumed by the sweep.

    Args:
        root: The `SweepRoot`.
        open_pool: Function without arguments; returns a context manager that
            gives a pool, and stops it at the end.
        runs: Tuple of `Run`.
    """
    left = _choose(root, runs)
    while left:
        with open_pool() as pool:
            size = pool.count_jobs()
            _measure(root, pool, left[:size])
        left = left[size:]


def _choose(root, runs):
    """Returns a run of each trainer and row of which none is measured."""
    rows = collections.defaultdict(list)
    for run in runs:
        if run.after is None:
            rows[run.trainer, run.row].append(run)
    return [
        of_row[0]
        for of_row in rows.values()
        if not any(map(root.is_measured, of_row))
    ]


def _measure(root, pool, runs):
    running = {run.name: run for run in runs}
    for run in runs:
        print(f"measuring {run.row}: {run.name}", flush=True)
        pool.submit(root.make_job(run))
    while not all(map(root.is_measured, running.values())):
        for job, record in pool.wait(SECONDS):
            run = running.pop(job.name)
            if record.get("lines") and not root.is_measured(run):
                print(f"failed: {job.name}: {record['lines'][-1]}", flush=True)
