"""What the runs of several candidates say: which one to choose."""

import dataclasses
import math
import statistics

from keras_lengen.evaluation import Estimate, LengthResults
from trainers.records.results import choose_metric, find_reach
from trainers.records.seeds import choose_best, join_names, name_seeds

USABLE = 0.9
"""Share of the metric at trained lengths that a usable length keeps."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the runs of a candidate found.

    Attributes:
        scores: Tuple of float, one for each seed.
        usable: int. The longest length at which the mean over the seeds keeps
            the share `USABLE` of the metric at trained lengths; 0: none.
        reach: int. The longest length up to which all seeds are above the
            floor; 0: none. `None`: there is no floor.
        minutes: float. Minutes of training, the median over the seeds.
    """

    scores: tuple
    usable: int
    reach: int | None
    minutes: float

    @property
    def score(self):
        """The mean of the scores."""
        return statistics.fmean(self.scores)


def measure_outcome(runs, problem):
    """Returns the `Outcome` of the runs of a candidate.

    Args:
        runs: List of dicts, the contents of `results.json` of each seed.
        problem: Their `Problem`.
    """
    first = problem.metrics[0]
    metric, score = choose_metric(runs, first.name)
    curves = [run["final"][f"{metric}_by_length"] for run in runs]
    lengths = sorted(map(int, curves[0]))
    means = {
        length: statistics.fmean(curve[str(length)] for curve in curves)
        for length in lengths
    }
    results = LengthResults(
        {
            metric: {
                n: Estimate(mean, *[math.nan] * 2) for n, mean in means.items()
            }
        },
        dict.fromkeys(lengths, 0),
        trained=[n for n in lengths if n <= problem.longest_trained],
        lower_is_better=() if first.higher_is_better else (metric,),
    )
    has_floor = any(
        f"{name}_by_length" in runs[0] for name in problem.floor_labels
    )
    return Outcome(
        tuple(run["final"][score] for run in runs),
        results.usable_length(USABLE, metric),
        min(find_reach(run, problem) for run in runs) if has_floor else None,
        statistics.median(run["train"]["seconds"] for run in runs) / 60,
    )


def list_best(outcomes, problem):
    """Returns the names of the best candidates, the best one first."""
    return choose_best(
        {name: outcome.scores for name, outcome in outcomes.items()},
        higher_is_better=problem.metrics[0].higher_is_better,
    )


def advise(outcomes, problem):
    """Returns one or two sentences of advice.

    Args:
        outcomes: Dict from candidates to `Outcome`s.
        problem: Their `Problem`.
    """
    best = list_best(outcomes, problem)
    if not is_above_floor(outcomes, problem):
        return (
            "No advice: no candidate is above the floor at a length above "
            f"{problem.describe_length(problem.longest_trained)} with all "
            "seeds. Train longer (--steps), with more data or a larger model "
            "before comparing encodings."
        )
    count = name_seeds([outcomes[name].scores for name in best])
    if len(best) > 1:
        return f"{join_names(best, 'or')}; no difference seen with {count}."
    others = {name: o for name, o in outcomes.items() if name != best[0]}
    second = list_best(others, problem)[0]
    return (
        f"{best[0]}: score {outcomes[best[0]].score:.3f} with {count}; the "
        f"next one is {second}, {outcomes[second].score:.3f}."
    )


def is_above_floor(outcomes, problem):
    """Returns whether a candidate is above the floor beyond training.

    It is also true where there is no floor.
    """
    longest = problem.longest_trained
    return any(
        outcome.reach is None or outcome.reach > longest
        for outcome in outcomes.values()
    )
