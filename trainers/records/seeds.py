"""Runs that differ only in their seed: their mean, and which are best."""

import math
import statistics

from keras_lengen.evaluation.intervals import (
    Estimate,
    student_estimate,
    student_quantile,
)
from trainers.engine.problem import average_unseen
from trainers.options.option import options
from trainers.records.opened_run import registered
from trainers.records.results import choose_metric


def group_seeds(results):
    """Groups the results of runs that differ only in their seed.

    Args:
        results: List of dicts, contents of `results.json`.

    Returns:
        List of lists of indices. Runs of a setting that has a seed twice stay
        apart.
    """
    groups = {}
    for index, found in enumerate(results):
        groups.setdefault(_describe_setting(found), []).append(index)
    return [
        part
        for group in groups.values()
        for part in (
            [group]
            if len({results[n]["config"].get("seed") for n in group})
            == len(group)
            else [[n] for n in group]
        )
    ]


def _describe_setting(found):
    config = found["config"]
    known = options(registered()[found["trainer"]].config)
    return (
        found["final"]["step"],
        *(
            repr(config.get(name, option.default))
            for name, option in known.items()
            if option.changes_result and name != "seed"
        ),
    )


def merge_seeds(runs, problem):
    """Returns the results of seeds of one setting as those of one run.

    Numbers are means. The 95% intervals of the metric and the score are those
    of Student's t for the mean of the seeds, or, where all seeds are equal and
    show no variance, the mean intervals of the examples.

    Args:
        runs: List of dicts, contents of `results.json`.
        problem: Their `Problem`.

    Returns:
        Dict, in the form of `results.json`, with the number of `"seeds"`.
    """
    if len(runs) == 1:
        return {**runs[0], "seeds": 1}
    parts = ("final", "best")
    merged = {
        **runs[0],
        **{
            part: _average([run[part] for run in runs])
            for part in parts
            if all(part in run for run in runs)
        },
        "seeds": len(runs),
    }
    seeds = ",".join(str(run["config"].get("seed")) for run in runs)
    merged["config"] = {**merged["config"], "seed": seeds}
    metric, score = choose_metric(runs, runs[0]["score_metric"])
    final, is_share = merged["final"], problem.metrics[0].is_share
    curve = f"{metric}_by_length"
    for length in final[curve]:
        values = [run["final"][curve][length] for run in runs]
        for end, bound in _find_bounds(values, is_share).items():
            bounds = final.setdefault(f"{metric}_{end}_by_length", {})
            bounds[length] = bound
    for end, bound in _find_bounds(
        [run["final"][score] for run in runs], is_share
    ).items():
        final[f"{score}_{end}"] = bound
    return merged


def _find_bounds(values, is_share):
    """Returns the bounds `low` and `high`; `{}`: there is no variance."""
    _, low, high = student_estimate(values)
    # Not-a-number if a value is not finite.
    if not low < high:
        return {}
    if is_share:
        low, high = max(low, 0.0), min(high, 1.0)
    return {"low": low, "high": high}


def _average(values):
    """Averages numbers, also those in dicts of one form."""
    first = values[0]
    if isinstance(first, dict):
        return {
            name: _average([value[name] for value in values])
            for name in first
            if all(name in value for value in values)
        }
    if isinstance(first, int | float):
        return statistics.fmean(values)
    return first


def estimate_score(results, problem):
    """Returns the score of results and its 95% interval, an `Estimate`.

    That of a single run is the mean of the intervals at the lengths that the
    score is the mean over.

    Args:
        results: Dict, from `merge_seeds`.
        problem: Its `Problem`.

    Returns:
        `Estimate`, with bounds `None` if no interval is known.
    """
    metric, score = choose_metric([results], problem.metrics[0].name)
    final, bounds = results["final"], []
    for end in ("low", "high"):
        by_length = final.get(f"{metric}_{end}_by_length")
        bound = final.get(f"{score}_{end}")
        if bound is None and by_length:
            bound = average_unseen(by_length, problem.longest_trained)
        bounds.append(bound)
    return Estimate(final[score], *bounds)


def find_deviation(scores):
    """Returns the standard deviation of a seed, pooled over settings.

    Args:
        scores: List of tuples of float, the scores of the seeds of a setting.

    Returns:
        The deviation and its degrees of freedom; 0 of these: it is not known.
    """
    means = [statistics.fmean(of) for of in scores]
    squares = sum(
        (score - mean) ** 2
        for of, mean in zip(scores, means, strict=True)
        for score in of
    )
    freedom = sum(len(of) - 1 for of in scores)
    return (math.sqrt(squares / freedom) if freedom else 0.0), freedom


def choose_best(scores, *, higher_is_better=True):
    """Returns the settings that no other is seen to be better than.

    Two settings differ if a t test of their mean scores says so at the level
    of 5%, corrected for the number of comparisons with the best one
    (Bonferroni). The deviation of a seed is taken to be equal for all of them,
    so that two seeds of each suffice for a first answer. With one seed of each,
    no difference can be seen.

    Args:
        scores: Dict from settings to tuples of float, the scores of its seeds.
            A setting with a score that is not finite is the best one only if
            all of them have one.
        higher_is_better: bool. Which scores are best.

    Returns:
        List of settings, the best one first.

    >>> choose_best({"a": (0.9, 0.92), "b": (0.89, 0.9), "c": (0.5, 0.52)})
    ['a', 'b']
    """
    finite = {
        name: of for name, of in scores.items() if all(map(math.isfinite, of))
    }
    scores = finite or scores
    means = {name: statistics.fmean(of) for name, of in scores.items()}
    best, *others = sorted(means, key=means.get, reverse=higher_is_better)
    deviation, freedom = find_deviation([*scores.values()])
    if not (freedom and others):
        return [best, *others]
    quantile = student_quantile(freedom, 0.05 / len(others))

    def differs(name):
        counts = len(scores[name]), len(scores[best])
        half = quantile * deviation * math.sqrt(sum(1 / n for n in counts))
        return abs(means[name] - means[best]) > half

    return [best, *(name for name in others if not differs(name))]


def name_seeds(scores):
    """Returns how many seeds were compared, such as `"2 or 3 seeds"`.

    Args:
        scores: Iterable of tuples of float, the scores of a setting.
    """
    counts = sorted({len(of) for of in scores})
    if counts == [1]:
        return "one seed"
    return f"{join_names(map(str, counts), 'or')} seeds"


def join_names(names, word):
    """Joins names by commas, and by a word before the last one."""
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last
