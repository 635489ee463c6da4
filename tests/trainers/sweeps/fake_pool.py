"""A pool that ends jobs as a test says, without processes."""

from trainers.sweeps.root import SweepRoot


class FakePool:
    """Ends jobs at once, as `ends` says: lists of records by run.

    Args:
        root: `FakeRoot`, which learns what has ended well.
        ends: Dict from the names of runs to lists of records.
        at_once: int. Number of jobs that end at a time.
    """

    def __init__(self, root, ends, at_once=99):
        self.root, self.ends, self.at_once = root, ends, at_once
        self.submitted, self.order = [], []

    def submit(self, job):
        self.submitted.append(job)
        self.order.append(job.name)

    def wait(self, seconds):
        ending = self.submitted[: self.at_once]
        self.submitted = self.submitted[self.at_once :]
        ended = [(job, self.ends[job.name].pop(0)) for job in ending]
        for job, record in ended:
            if record.get("status") == 0:
                self.root.done.append(job.name)
        return ended


class FakeRoot(SweepRoot):
    """Believes its pool, except for runs of `other` configurations."""

    def __init__(self, path):
        super().__init__(path, arguments={}, directory="", environment={})
        self.done, self.other = [], []

    def is_finished(self, run):
        return run.name in self.done and run.name not in self.other
