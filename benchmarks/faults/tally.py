"""Counts of faults and runs, and what each of them led to."""

import collections
import time

from trainers.records.progress import format_seconds


class Tally:
    """Counts faults, and collects failures with their logs.

    Args:
        planned: `{kind: number of faults}`.
        record: The `record` of an earlier tally to go on from, or `None`.
    """

    def __init__(self, planned, record=None):
        record = record or {"kinds": {}, "failures": [], "runs": 0}
        self.planned = planned
        self.kinds = {
            kind: {
                "faults": 0,
                "runs": 0,
                "passed": 0,
                **record["kinds"].get(kind, {}),
            }
            for kind in planned
        }
        for found in self.kinds.values():
            for name in ("moments", "endings"):
                found[name] = collections.Counter(found.get(name, {}))
        self.failures = list(record["failures"])
        self.runs = record["runs"]
        self.not_run = {}
        self._met = set()
        self._seconds = record.get("seconds", 0.0)
        self._start = time.monotonic()
        self._first = self.faults

    @property
    def faults(self):
        """Number of faults so far."""
        return sum(found["faults"] for found in self.kinds.values())

    @property
    def left(self):
        """Number of faults still to come, by kind, without those not run."""
        counts = {
            kind: planned - self.kinds[kind]["faults"]
            for kind, planned in self.planned.items()
            if kind not in self.not_run
        }
        return {kind: count for kind, count in counts.items() if count > 0}

    @property
    def record(self):
        """Everything that another tally needs to go on from here."""
        return {
            "faults": self.faults,
            "planned": sum(self.planned.values()),
            "runs": self.runs,
            "kinds": self.kinds,
            "not_run": self.not_run,
            "failures": self.failures,
            "seconds": self._seconds + time.monotonic() - self._start,
        }

    def skip(self, kind, reason):
        """Notes why a kind is not run."""
        del self.kinds[kind]
        self.not_run[kind] = reason

    def add(self, kind, moment, ending):
        """Counts a fault, what it hit and how the run ended."""
        found = self.kinds[kind]
        found["faults"] += 1
        found["moments"][moment] += 1
        found["endings"][ending] += 1
        self._met.add(kind)

    def add_restarts(self, logs):
        """Counts how often a worker noticed the loss of the other one."""
        lost = sum(log.read_text().count("worker was lost") for log in logs)
        self.kinds["worker"]["endings"]["the other restarted itself"] += lost

    def add_run(self, run, problem):
        """Counts a run that has ended, and prints the progress.

        Args:
            run: The `Run`.
            problem: Message of the failure, or `None`.
        """
        self.runs += 1
        for kind in self._met:
            self.kinds[kind]["runs"] += 1
            self.kinds[kind]["passed"] += problem is None
        if problem is not None:
            log = "\n".join(log.read_text()[-4000:] for log in run.logs[-2:])
            print(f"{run.path.name}: {problem}\n{log}", flush=True)
            self.failures.append(
                {
                    "run": run.path.name,
                    "faults": sorted(self._met),
                    "problem": problem,
                    "log": log,
                }
            )
        self._met.clear()
        rate = (self.faults - self._first) / (time.monotonic() - self._start)
        left = sum(self.left.values())
        print(
            f"{self.faults}/{self.faults + left} faults in {self.runs} runs, "
            f"{len(self.failures)} failures; {60 * rate:.1f} a minute, "
            f"{format_seconds(left / max(rate, 1e-9))} left",
            flush=True,
        )
