"""Comparisons of methods on tasks: one seed for all, further for the best.

A comparison trains every method on every task with seed 0. The methods that are
best at the unseen lengths of a task, and the baselines, are then trained with
further seeds.
"""

import dataclasses

from benchmarks.runs import make_row, report
from trainers.engine.problem import average_unseen

BEST = 3
"""Number of methods of a task that are trained with further seeds."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Methods, tasks, and how the models are trained.

    Attributes:
        name: str. Name of the benchmark.
        tasks: Dict from names to a trainer and its flags.
        methods: Dict from names to flags.
        model: Dict of the flags of all runs.
        trained: int. Longest trained length.
        baselines: Tuple of methods that get further seeds in any case.
        seeds: Tuple of int. The further seeds.
        metrics: Dict from tasks to another metric than the first one of their
            trainer.
    """

    name: str
    tasks: dict
    methods: dict
    model: dict
    trained: int
    baselines: tuple
    seeds: tuple
    metrics: dict = dataclasses.field(default_factory=dict)

    def takes(self, task, method):
        """Whether a method can be trained on a task; all can."""
        del task, method
        return True

    def list_methods(self, task):
        """Returns the methods of a task, a list of str."""
        return [name for name in self.methods if self.takes(task, name)]

    def make_run(self, task, method, seed, changes=(), **columns):
        """Makes the `Row` of a run.

        Args:
            task: str, one of the tasks.
            method: str, one of the methods.
            seed: int.
            changes: Dict of further flags of the trainer.
            **columns: Further columns of the report.
        """
        trainer, of_task = self.tasks[task]
        given = {**self.model, **of_task, **self.methods[method], "seed": seed}
        columns = {"task": task, "method": method, **columns, "seed": seed}
        return make_row(trainer, {**given, **dict(changes)}, **columns)

    def list_runs(self):
        """Returns the `Row`s of all runs that the report may have."""
        return [
            self.make_run(task, method, seed)
            for task in self.tasks
            for method in self.list_methods(task)
            for seed in (0, *self.seeds)
        ]

    def choose_more(self, rows):
        """Lists the tasks and methods that are trained with further seeds.

        Args:
            rows: Rows of the report. Once a task has all of its first runs,
                the methods are the best ones of these, and the baselines;
                none if all methods fail at all unseen lengths.
        """
        for task in self.tasks:
            scores = {
                row["method"]: row["score"]
                for row in rows
                if row["task"] == task and row["seed"] == 0
            }
            methods = self.list_methods(task)
            if scores.keys() >= set(methods) and any(scores.values()):
                best = sorted(methods, key=scores.get, reverse=True)[:BEST]
                for method in (*best, *self.baselines):
                    yield task, method

    def measure(self, row, workdir, results):
        """Returns what the report has of a finished run."""
        del workdir
        task = row.columns["task"]
        metric = self.metrics.get(task, results["score_metric"])
        shares = results["final"][f"{metric}_by_length"]
        return {
            "score": average_unseen(shares, self.trained),
            "floor": self._find_floor(task, results),
            f"{metric}_by_length": shares,
        }

    def _find_floor(self, task, results):
        """Returns the mean floor, or `None` if the task has another metric."""
        if task in self.metrics:
            return None
        return average_unseen(results["floor_by_length"], self.trained)

    def run(self, *, methods, tasks):
        """Trains what is missing, and writes the report.

        Args:
            methods: Container of the methods to train.
            tasks: Container of the tasks to train them on.
        """
        runs = self.list_runs()

        def train(is_chosen):
            return report(
                self.name,
                runs,
                self.measure,
                chosen=lambda row: (
                    row["method"] in methods
                    and row["task"] in tasks
                    and is_chosen(row)
                ),
            )

        rows = train(lambda row: row["seed"] == 0)
        # The results of the first runs choose the further ones.
        more = set(self.choose_more(rows))
        train(lambda row: (row["task"], row["method"]) in more)
