"""A pool that ends jobs as a test says, without processes."""

from trainers.sweeps.root import SweepRoot


class FakePool:
    """Ends jobs at once, as `ends` says: lists of records by run."""

    def __init__(self, root, ends):
        self.root, self.ends = root, ends
        self.submitted, self.order = [], []

    def submit(self, job):
        self.submitted.append(job)
        self.order.append(job.name)

    def wait(self, seconds):
        ended = [(job, self.ends[job.name].pop(0)) for job in self.submitted]
        self.submitted = []
        for job, record in ended:
            if record.get("status") == 0:
                self.root.done.add(job.name)
        return ended


class FakeRoot(SweepRoot):
    done = frozenset()

    def is_finished(self, run):
        return run.name in self.done
