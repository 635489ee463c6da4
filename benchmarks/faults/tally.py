"""Counts of faults and runs, and what each of them led to."""

import collections
import time

from trainers.records.progress import format_seconds


class Tally:
    """Counts faults, and collects failures with their logs.

    Args:
        planned: `{kind: number of faults}`.
    """

    def __init__(self, planned):
        self.planned = planned
        self.kinds = {
            kind: {
                "faults": 0,
                "runs": 0,
                "passed": 0,
                "moments": collections.Counter(),
                "endings": collections.Counter(),
            }
            for kind in planned
        }
        self.failures = []
        self.runs = 0
        self._met = set()
        self._start = time.monotonic()

    @property
    def faults(self):
        """Number of faults so far."""
        return sum(found["faults"] for found in self.kinds.values())

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
        planned = sum(self.planned.values())
        rate = self.faults / (time.monotonic() - self._start)
        left = (planned - self.faults) / max(rate, 1e-9)
        print(
            f"{self.faults}/{planned} faults in {self.runs} runs, "
            f"{len(self.failures)} failures; {60 * rate:.1f} a minute, "
            f"{format_seconds(left)} left",
            flush=True,
        )
