"""What can be compiled for TPUs, and what both backends' programs share."""

import math

import tensorflow as tf

from trainers import experiment as experiments
from trainers.engine.evaluation import LengthEvaluation
from trainers.engine.evaluation_sizes import split_examples
from trainers.records.opened_run import registered
from trainers.tpu.stand_ins import STAND_INS

MODES = ("train", "evaluate")


def list_trainers():
    """Returns all `Experiment`s that can be compiled, by name."""
    return {**registered(), **STAND_INS}


def find_lengths(experiment, config, mode):
    """Returns the padded lengths of a run: see `find_padded_lengths`."""
    problem = experiment.make_problem(config)
    return experiments.find_padded_lengths(config, problem, mode)


def count_trained(model):
    """Returns the number of trained parameters of a model."""
    return sum(
        math.prod(variable.shape) for variable in model.trainable_variables
    )


def find_share(problem, tokens, replicas):
    """Returns the number of examples that a replica evaluates in one batch.

    Args:
        problem: The `Problem`, evaluated at its longest length.
        tokens: int. Padded length of the sequences.
        replicas: int. Number of replicas.
    """
    number = problem.evaluation_examples(problem.lengths[-1])
    _, share = split_examples(number, tokens, replicas)
    return share


def describe_evaluation_batch(step, tokens, examples):
    """Describes an evaluation batch of the longest length.

    Args:
        step: The `EvaluationStep`.
        tokens: int. Padded length of the sequences.
        examples: int. Number of examples.

    Returns:
        Dict of `tf.TensorSpec`.
    """
    problem = step.problem
    length = problem.lengths[-1]
    drawn = LengthEvaluation(step, buckets=(tokens,)).draw
    drawn = drawn.get_concrete_function(
        tf.constant(length),
        tf.constant(0),
        tokens,
        examples,
        problem.evaluation_examples(length),
    )
    return {
        name: tf.TensorSpec(values.shape, values.dtype)
        for name, values in drawn.structured_outputs.items()
    }
