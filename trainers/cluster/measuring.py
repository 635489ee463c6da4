"""Measures what the cells of a sweep cost, on steps that are not lost."""

import collections

SECONDS = 1
"""Seconds between two looks at the pool."""


def measure(root, open_pool, cells):
    """Begins a run of each row until it is known how long its steps take.

    The runs save their states and are resumed by the sweep.

    Args:
        root: The `SweepRoot`.
        open_pool: Function without arguments; returns a context manager that
            gives a pool, and stops it at the end.
        cells: Tuple of `Cell`.
    """
    left = _choose(root, cells)
    while left:
        with open_pool() as pool:
            size = pool.count_jobs()
            _measure(root, pool, left[:size])
        left = left[size:]


def _choose(root, cells):
    """Returns a cell of each trainer and row of which none is measured."""
    rows = collections.defaultdict(list)
    for cell in cells:
        if cell.after is None:
            rows[cell.trainer, cell.row].append(cell)
    return [
        of_row[0]
        for of_row in rows.values()
        if not any(map(root.is_measured, of_row))
    ]


def _measure(root, pool, cells):
    running = {cell.name: cell for cell in cells}
    for cell in cells:
        print(f"measuring {cell.row}: {cell.name}", flush=True)
        pool.submit(root.make_job(cell))
    while not all(map(root.is_measured, running.values())):
        for job, record in pool.wait(SECONDS):
            cell = running.pop(job.name)
            if record.get("lines") and not root.is_measured(cell):
                print(f"failed: {job.name}: {record['lines'][-1]}", flush=True)
