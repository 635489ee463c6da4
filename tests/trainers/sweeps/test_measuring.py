"""The time of steps is measured on one run of each row."""

import contextlib

from tests.trainers.sweeps.fake_pool import FakePool
from tests.trainers.sweeps.files import make_run, open_root, write_progress
from trainers.sweeps.measuring import measure


class MeasuredPool(FakePool):
    """Lets runs log some steps, except for those that `ends` names."""

    def wait(self, seconds):
        logging = [job for job in self.submitted if job.name not in self.ends]
        for job in logging:
            write_progress(self.root, job, (1, 9.0), (3, 10.0))
            self.submitted.remove(job)
        ended, self.submitted = super().wait(seconds), logging
        return ended

    def count_jobs(self):
        return 2


def test_a_run_of_each_row_is_measured(tmp_path, capsys):
    root = open_root(tmp_path)
    runs = tuple(make_run(n, row="abcd"[n // 2]) for n in range(8))
    write_progress(root, runs[1], (1, 9.0), (3, 10.0))
    bad, pools = runs[4], []

    @contextlib.contextmanager
    def open_pool():
        failed = {"status": 1, "lines": ["a mistake"]}
        pool = MeasuredPool(root, {bad.name: [failed]})
        pools.append(pool.order)
        yield pool
        pools.append("stopped")

    measure(root, open_pool, (*runs, make_run(9, row="e", after=runs[0])))
    # One row is known, one continues another run; there is room for two.
    assert pools == [
        *([runs[2].name, bad.name], "stopped"),
        *([runs[6].name], "stopped"),
    ]
    out = capsys.readouterr().out
    assert f"measuring d: {runs[6].name}" in out
    assert f"failed: {bad.name}: a mistake" in out
    assert root.estimate(runs)([runs[2]])[1] == 0
