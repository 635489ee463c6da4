"""The time of steps is measured on one run of each row."""

import contextlib

from tests.trainers.sweeps.fake_pool import FakePool
from tests.trainers.sweeps.files import make_run, open_root, write_progress
from trainers.sweeps import measuring


class MeasuredPool(FakePool):
    """Lets runs log some steps, and remembers who was asked to stop."""

    stopped = 0

    def wait(self, seconds):
        ended = []
        for job in list(self.submitted):
            if self.ends.get(job.name):
                self.submitted.remove(job)
                ended.append((job, self.ends[job.name].pop()))
            else:
                run = next(c for c in self.runs if c.name == job.name)
                write_progress(self.root, run, (1, 9.0), (3, 10.0))
        return ended

    def count_jobs(self):
        return 2


def test_a_run_of_each_row_is_measured(tmp_path, capsys):
    root = open_root(tmp_path)
    runs = [make_run(n, row="abcd"[n // 2]) for n in range(8)]
    write_progress(root, runs[1], (1, 9.0), (3, 10.0))
    bad = runs[4]
    pools = []

    @contextlib.contextmanager
    def open_pool():
        failed = {"status": 1, "lines": ["a mistake"]}
        pool = MeasuredPool(root, {bad.name: [failed]})
        pool.runs = runs
        pools.append(pool.order)
        yield pool
        pools.append("stopped")

    measuring.measure(root, open_pool, tuple(runs))
    # One row is known, and there is room for two runs at a time.
    assert pools == [
        [runs[2].name, bad.name],
        "stopped",
        [runs[6].name],
        "stopped",
    ]
    out = capsys.readouterr().out
    assert f"measuring d: {runs[6].name}" in out
    assert f"failed: {bad.name}: a mistake" in out
    assert root.estimate(runs)([runs[2]])[1] == 0
