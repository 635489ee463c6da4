"""Runs that differ only in their seed, as one curve with an interval."""

import statistics

from keras_lengen.evaluation.intervals import Estimate, student_estimate
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
