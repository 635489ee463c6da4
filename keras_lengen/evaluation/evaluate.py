"""The compiled loss and metrics of any Keras model at many lengths."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np

from keras_lengen.checks.arguments import Instance, Integer
from keras_lengen.evaluation.examples import Examples, read_examples
from keras_lengen.evaluation.intervals import Estimate, jackknife_estimate
from keras_lengen.evaluation.results import LengthResults
from keras_lengen.types import Array

GROUPS = 20
"""Number of groups of examples that a confidence interval comes from."""

CORRELATIONS = (
    keras.metrics.CosineSimilarity,
    keras.metrics.R2Score,
    keras.metrics.PearsonCorrelation,
    keras.metrics.ConcordanceCorrelation,
)
"""Metrics of Keras that are at most 1 and may be negative."""

MOST_WIDTHS = 3
"""Number of widths that are compiled one by one, before padding is tried."""


def evaluate_by_length(
    model: keras.Model,
    data: Any,
    lengths: Iterable[int] | int | None = None,
    *,
    trained: Iterable[int] | int | None = None,
    batch_size: int = 32,
    padding_value: float = 0,
    verbose: bool = False,
) -> LengthResults:
    """Computes the compiled loss and metrics of a model at many lengths.

    For any compiled Keras model: functional, `Sequential`, of KerasHub, of this
    library or one's own, on every backend. Sample weights, masks and several
    inputs work as in `model.evaluate`. The metrics of the model are reset.

    Inputs are padded to a few widths, so that few programs are compiled, but
    only if padding does not change the results of one of the lengths; else
    each length keeps its own width. If the model has a fixed length, all inputs
    are padded to it.

    Args:
        model: Compiled Keras model.
        data: The examples. A function that returns those of a length; or a
            dict from lengths to them; or padded examples of many lengths,
            which are grouped by their true lengths. Examples are a tuple
            `(inputs, targets)` or `(inputs, targets, sample_weight)` of arrays,
            or batches of such tuples: a `tf.data.Dataset`, a `PyDataset`, a
            `DataLoader` or a list. They are held in memory. The axis of tokens
            is axis 1. True lengths are those of the inputs `lengths` or
            `padding_mask` if inputs are a dict with one of them, else tokens up
            to the last that is not `padding_value`.
        lengths: int or ints, at least 1. The lengths to measure; for padded
            examples, the longest length of each group. `None`: all that `data`
            has.
        trained: Lengths that the model was trained on: the longest one, or
            all of them. The results refer to them.
        batch_size: int, at least 1. Maximum number of examples of a batch.
        padding_value: float. Number that inputs are padded with.
        verbose: bool. Whether to show a bar of progress.

    Returns:
        The `LengthResults`.

    Raises:
        ValueError: If the model is not compiled, or has a fixed length below
            one of `lengths`; if `data` has another form, or no examples of one
            of `lengths`.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from keras_lengen.evaluation import evaluate_by_length
    >>> model = keras.Sequential(
    ...     [keras.layers.Embedding(4, 8), keras.layers.LSTM(8),
    ...      keras.layers.Dense(2)])
    >>> model.compile(
    ...     loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    ...     metrics=["accuracy"])
    >>> def sample(length):
    ...     bits = np.random.default_rng(length).integers(0, 2, (64, length))
    ...     return bits, bits.sum(axis=1) % 2
    >>> results = evaluate_by_length(model, sample, [8, 16], trained=8)
    >>> list(results["accuracy"])
    [8, 16]
    >>> results.examples[16]
    64
    """
    Instance(keras.Model, "Sequential(...)").check("model", model)
    if not getattr(model, "compiled", False):
        raise ValueError(
            "model must be compiled, because its compiled loss and metrics are "
            "measured: call `model.compile(...)` first."
        )
    size = Integer().check("batch_size", batch_size)
    wanted = None if lengths is None else read_lengths("lengths", lengths)
    known = () if trained is None else read_trained(trained)
    found = read_examples(data, wanted, padding_value)
    fitted = _fit_widths(model, found, size, padding_value)
    bar = keras.utils.Progbar(len(found), unit_name="length")
    measured = {}
    for index, (length, examples) in enumerate(fitted.items()):
        measured[length] = _measure(model, examples, size)
        if verbose:
            bar.update(index + 1)
    found_names = next(iter(measured.values()))
    # The loss first: some versions of Keras sort the names.
    names = sorted(found_names, key=lambda name: name != "loss")
    return LengthResults(
        metrics={
            name: {length: each[name] for length, each in measured.items()}
            for name in names
        },
        examples={length: each.count for length, each in found.items()},
        trained=known,
        lower_is_better=("loss", *_list_directed(model, "down")),
    )


def read_lengths(name: str, lengths: Iterable[int] | int) -> list[int]:
    """Returns lengths, increasing, each once; raises if one is no length."""
    values = list(lengths) if isinstance(lengths, Iterable) else [lengths]
    if not values:
        raise ValueError(
            f"{name} must have at least one length; got {lengths}."
        )
    check = Integer(what="a length in tokens").check
    return sorted({check(name, value) for value in values})


def read_trained(trained: Iterable[int] | int) -> list[int]:
    """Returns trained lengths; a single number is the longest one."""
    lengths = read_lengths("trained", trained)
    if isinstance(trained, (int, np.integer)):
        return list(range(1, lengths[0] + 1))
    return lengths


def _measure(
    model: keras.Model, examples: Examples, batch_size: int
) -> dict[str, Estimate]:
    """Returns the loss and metrics of examples of one width."""
    if not _adds_up(model):
        values = _evaluate(model, examples, batch_size)
        return {
            name: Estimate(value, np.nan, np.nan)
            for name, value in values.items()
        }
    # Groups are batches, or equally many of them.
    batch_size = min(batch_size, -(-examples.count // GROUPS))
    states = [
        _evaluate_batch(
            model, examples.select(slice(start, start + batch_size))
        )
        for start in range(0, examples.count, batch_size)
    ]
    groups = -(-len(states) // GROUPS)
    states = [
        _add(states[start : start + groups])
        for start in range(0, len(states), groups)
    ]
    whole = _add(states)
    values = _compute_metrics(model, whole)
    without = [
        _compute_metrics(model, list(map(np.subtract, whole, state)))
        for state in states
        if len(states) > 1
    ]
    shares = _list_shares(model)
    return {
        name: jackknife_estimate(
            value,
            np.array([each[name] for each in without]),
            examples.count,
            is_share=name in shares and 0 <= value <= 1,
        )
        for name, value in values.items()
    }


def _evaluate_batch(model: keras.Model, examples: Examples) -> list[Array]:
    """Returns the states of the metrics after one batch."""
    model.reset_metrics()
    model.test_on_batch(
        examples.inputs,
        examples.targets,
        sample_weight=examples.sample_weight,
        return_dict=True,
    )
    return [
        np.asarray(keras.ops.convert_to_numpy(variable), "float64")
        for variable in model.metrics_variables
    ]


def _evaluate(
    model: keras.Model, examples: Examples, batch_size: int
) -> dict[str, float]:
    values: dict[str, float] = model.evaluate(
        examples.inputs,
        examples.targets,
        sample_weight=examples.sample_weight,
        batch_size=batch_size,
        return_dict=True,
        verbose=0,
    )
    return values


def _adds_up(model: keras.Model) -> bool:
    """Whether the states of all metrics are sums over examples.

    This holds for every metric of Keras, and is unknown for others.
    """
    return all(
        any(
            base.__module__.startswith("keras.")
            and base is not keras.Metric
            and issubclass(base, keras.Metric)
            for base in type(metric).__mro__
        )
        for metric in _list_metrics(model)
    )


def _list_metrics(model: keras.Model) -> list[keras.Metric]:
    """Returns the metrics of a model, those that were compiled included."""
    found: list[keras.Metric] = []
    for metric in model.metrics:
        found += getattr(metric, "metrics", None) or [metric]
    return found


def _add(states: Sequence[list[Array]]) -> list[Array]:
    return [np.sum(values, axis=0) for values in zip(*states, strict=True)]


def _compute_metrics(
    model: keras.Model, state: Sequence[Array]
) -> dict[str, float]:
    """Returns the values of the metrics for a state."""
    for variable, value in zip(model.metrics_variables, state, strict=True):
        variable.assign(keras.ops.cast(value, variable.dtype))
    return {
        name: float(keras.ops.convert_to_numpy(value))
        for name, value in model.get_metrics_result().items()
    }


def _fit_widths(
    model: keras.Model,
    found: dict[int, Examples],
    batch_size: int,
    padding_value: float,
) -> dict[int, Examples]:
    """Resizes the examples to widths that the model takes, and to few."""

    def resize(width_of: Callable[[Examples], int]) -> dict[int, Examples]:
        return {
            length: examples.resize(width_of(examples), padding_value)
            for length, examples in found.items()
        }

    longest = max(examples.used_width for examples in found.values())
    fixed = _find_fixed_width(model)
    if fixed is not None:
        if longest > fixed:
            raise ValueError(
                f"the model has inputs of {fixed} tokens, but the examples of "
                f"length {max(found)} have {longest}: build it with a shape "
                "(None, ...), or measure shorter lengths."
            )
        return resize(lambda examples: fixed)
    fitted = resize(lambda examples: _choose_width(examples, longest))
    own = {examples.width for examples in found.values()}
    if len(own) <= MOST_WIDTHS and max(own) == longest:
        return found
    changed = [
        length
        for length, examples in found.items()
        if examples.width != fitted[length].width
    ]
    if not changed:
        return found
    first, second = (
        _evaluate(model, each[changed[0]].select(slice(batch_size)), batch_size)
        for each in (found, fitted)
    )
    is_equal = np.allclose(
        list(first.values()), list(second.values()), rtol=1e-4, equal_nan=True
    )
    return fitted if is_equal else found


def _choose_width(examples: Examples, longest: int) -> int:
    """Returns the least of `longest`, its half, its quarter, ... that fits."""
    width = longest
    while -(-width // 2) >= examples.used_width and width > 1:
        width = -(-width // 2)
    return width


def _find_fixed_width(model: keras.Model) -> int | None:
    """Returns the number of tokens that the inputs of a model must have."""
    # It is built with the shape of its first inputs, but takes others, too.
    if isinstance(model, keras.Sequential):
        return None
    for tensor in keras.tree.flatten(getattr(model, "inputs", None) or []):
        if len(tensor.shape) >= 2:
            width: int | None = tensor.shape[1]
            return width
    return None


def _list_shares(model: keras.Model) -> list[str]:
    """Returns the names of metrics that are from 0 to 1.

    They are those of Keras that are better when higher, but no correlations.
    """
    correlations = {
        metric.name
        for metric in _list_metrics(model)
        if isinstance(metric, CORRELATIONS)
    }
    names = _list_directed(model, "up")
    return [name for name in names if name not in correlations]


def _list_directed(model: keras.Model, direction: str) -> list[str]:
    """Returns the names of metrics that are better "up" or "down"."""
    return [
        metric.name
        for metric in _list_metrics(model)
        if getattr(metric, "_direction", None) == direction
    ]
