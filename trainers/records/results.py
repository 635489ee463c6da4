"""What `results.json` says of a run, and of a later evaluation."""

import importlib
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
