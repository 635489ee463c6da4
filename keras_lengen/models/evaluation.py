"""Changes the positions that a model has in evaluation."""

from typing import Any

import keras

from keras_lengen.checks.arguments import Instance
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.layers.positions.evaluation import Evaluation
from keras_lengen.models.programs import forget_programs


def set_evaluation(model: keras.Model, evaluation: str) -> None:
    """Changes the argument `evaluation` of all samplers of a model.

    The programs that Keras has compiled for `fit`, `evaluate`, `predict` and
    `generate` are compiled again. If the model is a part of another one, pass
    the whole model. Make functions that you compiled yourself again.

    Args:
        model: Keras model with samplers that have an argument `evaluation`,
            such as `RandomizedPositions`; also a functional model, a
            retrofitted one, or a task of KerasHub.
        evaluation: str, a value that all these samplers accept.

    Raises:
        ValueError: If the model has no such sampler, or one of them does not
            accept the value. Nothing is changed then.

    Example:

    >>> import numpy as np
    >>> from keras_lengen.layers import RandomizedRoPE
    >>> from keras_lengen.models import TransformerDecoder, set_evaluation
    >>> model = TransformerDecoder(
    ...     vocabulary_size=9, num_layers=1, num_heads=2, model_dim=8,
    ...     encoding=RandomizedRoPE(max_position=64))
    >>> token_ids = np.ones((1, 4), "int32")
    >>> first, second = (
    ...     model.predict(token_ids, verbose=0) for _ in range(2))
    >>> bool((first == second).all())
    False
    >>> set_evaluation(model, "even")
    >>> first, second = (
    ...     model.predict(token_ids, verbose=0) for _ in range(2))
    >>> bool((first == second).all())
    True
    """
    Instance[keras.Model](keras.Model, "TransformerDecoder(...)").check(
        "model", model
    )
    found: list[tuple[PositionSampler, Evaluation]] = []
    for layer in model._flatten_layers():
        argument = getattr(type(layer), "evaluation", None)
        if isinstance(argument, Evaluation):
            argument.check(f"evaluation of {type(layer).__name__}", evaluation)
            found.append((layer, argument))
    if not found:
        raise ValueError(
            "model must have a sampler with an argument evaluation, such as "
            f"RandomizedPositions; this {type(model).__name__} has none."
        )
    for sampler, argument in found:
        argument.change(sampler, evaluation)
    tasks: Any = getattr(model, "tasks", ())
    for each in (*model._flatten_layers(), *tasks):
        if isinstance(each, keras.Model):
            forget_programs(each)
