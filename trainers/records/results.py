"""What `results.json` says of a run, and of a later evaluation."""

import importlib
import math
import platform
import sys

import keras
import numpy as np

import keras_lengen
from trainers.engine.problem import average_unseen

SEED_MEANING = (
    "Initial weights, data, positions and dropout follow from it. Data are "
    "the same on any number of replicas; each replica draws positions and "
    "dropout of its own."
)


def choose_metric(results, metric):
    """Chooses what to show of results, and the name of their score.

    Args:
        results: Iterable of contents of `results.json`.
        metric: str. Name of the first metric.

    Returns:
        The metric and `"score"`; or, if all models have written answers
        themselves, how many of these were right and `"generated_score"`.
    """
    written = f"generated_{metric}"
    if all(f"{written}_by_length" in found["final"] for found in results):
        return written, "generated_score"
    return metric, "score"


def describe_score(results, problem):
    """Describes the score of results in words.

    Args:
        results: Dict, contents of `results.json`.
        problem: Its `Problem`.
    """
    first = problem.metrics[0]
    metric, name = choose_metric([results], first.name)
    score = results["final"][name]
    about = f"mean {metric} at {name_scored(problem)}".replace("_", " ")
    if first.second_unit:
        unit, factor = first.second_unit
        about += f"; {score * factor:.3f} {unit}"
    return f"{name.replace('_', ' ')} {score:.3f} ({about})"


def name_scored(problem):
    """Returns the name of the lengths that a score is the mean over."""
    name, longest = f"{problem.length_name}s", problem.longest_trained
    if max(problem.lengths) > longest:
        return f"{name} above {problem.describe_length(longest)}"
    return f"all {name}"


def find_floor(results, problem):
    """Returns the values of the strongest trivial predictor.

    Args:
        results: Dict, contents of `results.json`.
        problem: Its `Problem`.

    Returns:
        `{length: value}`, increasing; empty: the problem has no floors.
    """
    choose = max if problem.metrics[0].higher_is_better else min
    found = [
        results.get(f"{name}_by_length", {}) for name in problem.floor_labels
    ]
    lengths = set.intersection(*map(set, found)) if found else set()
    return {
        int(length): choose(values[length] for values in found)
        for length in sorted(lengths, key=int)
    }


def find_reach(results, problem):
    """Returns the length up to which results are above the floor.

    A share counts as above if chance explains the difference in fewer than
    one of 20 evaluations. Lengths are skipped where it would explain even a
    perfect one, because the floor is almost 1.

    Args:
        results: Dict, contents of `results.json`.
        problem: Its `Problem`.

    Returns:
        int, a measured length; 0: the shortest one is not above the floor.
    """
    first = problem.metrics[0]
    metric, _ = choose_metric([results], first.name)
    curve = results["final"][f"{metric}_by_length"]
    is_generated = metric.startswith("generated_")
    counted = "generated_examples" if is_generated else "evaluation_examples"
    # 0 stands for all examples that there are.
    examples = results["config"].get(counted) or math.inf
    reach = 0
    for length, floor in find_floor(results, problem).items():
        value = curve.get(str(length))
        if value is None or (first.is_share and floor**examples >= 0.05):
            continue
        difference = value - floor if first.higher_is_better else floor - value
        margin = 0.0
        if first.is_share and value < 1:
            margin = 1.96 * math.sqrt(floor * (1 - floor) / examples)
        if difference <= margin:
            break
        reach = length
    return reach


def describe_floor(results, problem):
    """Says up to which length results are above the floor.

    Args:
        results: Dict, contents of `results.json`.
        problem: Its `Problem`.

    Returns:
        str; `""`: the problem has no floors.
    """
    floor = find_floor(results, problem)
    if not floor:
        return ""
    reach = find_reach(results, problem)
    longest = max(floor)
    shown = problem.describe_length(reach or longest)
    if not reach:
        return (
            f"not above the floor, {floor[longest]:.2f} at "
            f"{problem.length_name} {shown}"
        )
    which = ", the longest evaluated" if reach == longest else ""
    return (
        f"above the floor of {floor[reach]:.2f} up to {problem.length_name} "
        f"{shown}{which}"
    )


def describe_results(trainer, digest, config, problem, strategy):
    """Returns what results of a run have in common, whoever measured them.

    Args:
        trainer: str. Name of the run's experiment.
        digest: str. Digest of the run's configuration.
        config: Dict, the configuration that was measured.
        problem: The `Problem`.
        strategy: The `Strategy` of the process that measured.
    """
    return {
        "trainer": trainer,
        "digest": digest,
        "config": config,
        "versions": versions(),
        "computed_by": {
            "backend": keras.backend.backend(),
            "backend_version": find_backend_version(),
            "replicas": strategy.num_replicas,
            "devices": list(strategy.devices),
            "precision": config["precision"],
        },
        "seed": {"value": config["seed"], "meaning": SEED_MEANING},
        "score_metric": problem.metrics[0].name,
        "higher_is_better": problem.metrics[0].higher_is_better,
        **({"note": problem.note} if problem.note else {}),
        **({"kinds": list(problem.kinds)} if problem.kinds else {}),
        # Data that are computed have none.
        **({"data_digest": problem.data_digest} if problem.data_digest else {}),
        **({"data": problem.data} if problem.data else {}),
        **{
            f"{name}_by_length": {str(n): value for n, value in by.items()}
            for name, by in problem.floors().items()
        },
    }


def summarize(found, problem, step):
    """Returns an evaluation in the form of `results.json`, with its score.

    Args:
        found: `{metric: {length: value}}`.
        problem: The `Problem`.
        step: int. Number of steps that the model was trained for.
    """
    by_metric = {
        f"{metric}_by_length": {str(n): value for n, value in by.items()}
        for metric, by in found.items()
    }
    main = found[problem.metrics[0].name]
    score = average_unseen(main, problem.longest_trained)
    return {**by_metric, "score": score, "step": step}


def find_kinds(results):
    """Returns what results say of each kind of example.

    Args:
        results: Content of `results.json`.

    Returns:
        `{kind: {length: value}}`, lengths being decimal strings, of the metric
        that `choose_metric` chooses; empty: kinds were not counted apart.
    """
    metric, _ = choose_metric([results], results["score_metric"])
    return {
        kind: results["final"][f"{metric}_{kind}_by_length"]
        for kind in results.get("kinds", ())
    }


def describe_worst_kind(results):
    """Returns a line about the kind with the worst value at any length.

    Args:
        results: Content of `results.json`.

    Returns:
        str; `""`: kinds were not counted apart.
    """
    values = [
        (value, length, kind)
        for kind, by_length in find_kinds(results).items()
        for length, value in by_length.items()
    ]
    if not values:
        return ""
    choose = min if results["higher_is_better"] else max
    value, length, kind = choose(values, key=lambda found: found[0])
    return f"worst kind at any length: {kind} at {length}, {value:.3f}"


def versions():
    """Returns the versions of packages that results depend on."""
    # Not every program imports both.
    computing = filter(None, map(sys.modules.get, ("tensorflow", "jax")))
    packages = (keras, keras_lengen, np, *computing)
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{package.__name__: package.__version__ for package in packages},
    }


def find_backend_version():
    """Returns the version of the package that Keras computes with."""
    return importlib.import_module(keras.backend.backend()).__version__
