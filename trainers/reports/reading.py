"""Reads the runs of a report from their working directories."""

import dataclasses
import pathlib
import statistics

from trainers.errors import ConfigError
from trainers.options.option import options
from trainers.populations.members import parse_learning_rates, parse_seeds
from trainers.records.measurements import list_measurements
from trainers.records.opened_run import registered
from trainers.records.results import find_kinds
from trainers.records.workdir import naming_damage, read_config, read_results
from trainers.sweeps.grids import Run

POPULATION = "population"
"""Trainer of many models at once, each of which is reported as a run."""

ALONE = "algorithmic"
"""Trainer whose runs the members of a population are equal to."""


@dataclasses.dataclass(frozen=True)
class Saved:
    """What a working directory says of a run that has begun.

    Attributes:
        path: `pathlib.Path` of the working directory.
        trainer: str. Name of the trainer.
        config: Dict, the configuration.
        results: Dict, the content of `results.json`; `None`: not finished.
    """

    path: pathlib.Path
    trainer: str
    config: dict
    results: dict | None = None


@dataclasses.dataclass(frozen=True)
class ReportedRun:
    """A run of a grid with its results, if it has finished.

    Attributes:
        planned: The `Run` of the grid.
        path: `pathlib.Path` of its working directory; `None`: not begun.
        config: Dict, its configuration; empty: not begun.
        results: Dict, the entries of its `results.json` without most of its
            metrics; empty: not finished.
        scores: Dict from lengths, or `None` for all of them, to scores in the
            unit of the table.
        curve: Dict from lengths to the metric that the scores are made of.
        low: Dict from lengths to the lower ends of its measured intervals.
        high: Dict from lengths to the upper ends.
        kinds: Dict from kinds of examples to the first metric of each, a dict
            from lengths to values in the unit of the table; empty: examples
            are not told apart.
    """

    planned: Run
    path: pathlib.Path | None = None
    config: dict = dataclasses.field(default_factory=dict)
    results: dict = dataclasses.field(default_factory=dict)
    scores: dict = dataclasses.field(default_factory=dict)
    curve: dict = dataclasses.field(default_factory=dict)
    low: dict = dataclasses.field(default_factory=dict)
    high: dict = dataclasses.field(default_factory=dict)
    kinds: dict = dataclasses.field(default_factory=dict)

    @property
    def finished(self):
        """Whether the run has results."""
        return bool(self.results)

    @property
    def problem(self):
        """What the run is trained on, a str; runs with the same one compare."""
        flags = self.planned.flags
        named = (flags.get(name) for name in ("task", "dataset"))
        return " ".join(filter(None, [self.planned.trainer, *named]))

    def find_flag(self, name):
        """Returns the value of a flag, `None` if the run has none."""
        return self.config.get(name, self.planned.flags.get(name))


def find_workdirs(root):
    """Finds the working directories of the runs of grids.

    Args:
        root: `pathlib.Path` of the directory that a sweep writes to.

    Returns:
        Dict from the `digest`s of runs to paths. Runs that have not begun
        are missing.
    """
    found = (root / "runs").glob("*-*")
    return {path.name.rpartition("-")[2]: path for path in found}


def read_saved(path):
    """Reads what a working directory says of its runs.

    Args:
        path: `pathlib.Path` of the directory.

    Returns:
        List of `Saved`: one for a run, one for each member of a population,
        none if no run has begun there.

    Raises:
        ConfigError: If a file is damaged or of another version.
    """
    record = read_config(path)
    if record is None:
        return []
    file = path / "results.json"
    results = read_results(file)
    with naming_damage(file):
        if results is not None:
            _check_types(results)
        if record["trainer"] == POPULATION:
            return _split(path, record["config"], results)
    # A run that trains on has other flags than its results.
    config = (results or record)["config"]
    saved = Saved(path, record["trainer"], config, results)
    if saved.trainer not in registered():
        raise ConfigError(f"{path} is of an unknown trainer, {saved.trainer}.")
    known = options(registered()[saved.trainer].config)
    for source, of in ((path / "config.json", record), (file, results)):
        if of is not None and of["config"].keys() - known.keys():
            raise ConfigError(
                f"{source} has flags that this version does not know: use the "
                "version that began the run."
            )
    return [saved]


def report_run(planned, saved, grid):
    """Reads the results of a run of a grid from what is saved.

    Args:
        planned: The `Run`.
        saved: Its `Saved`; `None`: it has not begun.
        grid: The `Grid`.

    Returns:
        A `ReportedRun`.

    Raises:
        ConfigError: If the results are damaged, or have no score of this kind.
    """
    if saved is None:
        return ReportedRun(planned)
    if saved.results is None:
        return ReportedRun(planned, saved.path, saved.config)
    file, results = saved.path / "results.json", {**saved.results}
    final, scale = results.pop("final"), find_scale(grid)
    if not grid.is_time and grid.score not in final:
        raise ConfigError(
            f"{file} has no {grid.score} in `final`; it has {', '.join(final)}."
        )
    with naming_damage(file):
        scores = _find_scores(grid, results, final)
        name = name_curve(grid, results)
        curve = {
            each.length: each
            for each in list_measurements(saved.results)
            if f"{each.metric}_by_length" == name and not grid.is_time
        }
        if not (curve or grid.is_time):
            raise KeyError(name)
        kinds = {} if grid.is_time else find_kinds(saved.results)
        # Thousands of runs are in memory at a time.
        kept = {n: v for n, v in results.items() if n != "best"}
        return ReportedRun(
            planned,
            saved.path,
            saved.config,
            {**kept, "steps": final.get("step")},
            {length: value * scale for length, value in scores.items()},
            *(
                {
                    length: getattr(each, field)
                    for length, each in curve.items()
                    if getattr(each, field) is not None
                }
                for field in ("value", "low", "high")
            ),
            {
                kind: {int(n): value * scale for n, value in by_length.items()}
                for kind, by_length in kinds.items()
            },
        )


def name_curve(grid, results):
    """Returns the entry of `final` that the scores of a grid are made of."""
    if grid.score.endswith("_by_length"):
        return grid.score
    written = "generated_" if grid.score.startswith("generated_") else ""
    return f"{written}{results['score_metric']}_by_length"


def find_scale(grid):
    """Returns what to multiply scores with: percent for shares."""
    return 100 if grid.unit == "%" else 1


def _find_scores(grid, results, final):
    """Returns a dict from lengths, or `None` for all of them, to scores."""
    if grid.is_time:
        return {None: results["train"]["seconds"] / 3600}
    score = final[grid.score]
    if not isinstance(score, dict):
        return {None: score}
    scores = {int(length): value for length, value in score.items()}
    return scores if grid.lengths else {None: statistics.fmean(scores.values())}


def _split(path, config, results):
    """Returns a `Saved` for each member of a population.

    Each has the configuration of the run that the member is equal to.
    """
    alone = options(registered()[ALONE].config)
    common = {
        name: config.get(name, known.default) for name, known in alone.items()
    }
    if results is None:
        return [
            Saved(path, ALONE, {**common, "seed": seed, "learning_rate": rate})
            for rate in parse_learning_rates(config["learning_rates"])
            for seed in parse_seeds(config["seeds"])
        ]
    shared = {n: v for n, v in results.items() if n != "members"}
    found = []
    for member in results["members"]:
        varied = {name: member[name] for name in ("seed", "learning_rate")}
        its_config = {**common, **varied}
        # One that has diverged counts as a run without results.
        its_results = (
            None
            if "diverged_in_step" in member
            else {
                **shared,
                "trainer": ALONE,
                "config": its_config,
                "final": {**member, "step": results["train"]["steps"]},
            }
        )
        found.append(Saved(path, ALONE, its_config, its_results))
    return found


def _check_types(results):
    """Raises an error that `naming_damage` knows for odd contents."""
    if not isinstance(results["score_metric"], str):
        raise TypeError
    for name, by_length in results.items():
        if name.endswith("_by_length"):
            for length, value in by_length.items():
                int(length), float(value)
