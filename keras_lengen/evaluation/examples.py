"""Examples of each length, read from whatever form a user has them in."""

import dataclasses
from collections.abc import (
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any

import keras
import numpy as np

from keras_lengen.types import Array, IntArray

FORMS = (
    "a tuple (inputs, targets) or (inputs, targets, sample_weight) of arrays, "
    "or batches of such tuples: a tf.data.Dataset, a PyDataset, a DataLoader "
    "or a list"
)


@dataclasses.dataclass(frozen=True)
class Examples:
    """Inputs, targets and sample weights of some examples.

    Each of the three is a structure of NumPy arrays `(N, ...)`; targets and
    weights may be `None`.

    Attributes:
        used_width: Number of tokens behind which all is padding.
    """

    inputs: Any
    targets: Any
    sample_weight: Any
    used_width: int

    @property
    def count(self) -> int:
        """Number of examples, N."""
        return len(keras.tree.flatten(self.inputs)[0])

    @property
    def width(self) -> int:
        """Number of tokens with padding: axis 1 of the first such input."""
        return int(_find_tokens(self.inputs).shape[1])

    def select(self, chosen: Any) -> "Examples":
        """Returns the examples that a slice or an array of indices chooses."""
        return self._map(lambda array: array[chosen])

    def resize(self, width: int, padding_value: float) -> "Examples":
        """Cuts or pads the arrays that have an axis of tokens.

        Inputs are padded with `padding_value`, targets and weights with 0.
        """
        own = self.width

        def resize(array: Array, value: float) -> Array:
            if array.ndim < 2 or array.shape[1] != own or width == own:
                return array
            added = [(0, 0)] * array.ndim
            added[1] = (0, max(width - own, 0))
            return np.pad(array[:, :width], added, constant_values=value)

        return Examples(
            _map(lambda array: resize(array, padding_value), self.inputs),
            _map(lambda array: resize(array, 0), self.targets),
            _map(lambda array: resize(array, 0), self.sample_weight),
            self.used_width,
        )

    def measure_lengths(self, padding_value: float) -> IntArray:
        """Returns the true length of each example: int `(N,)`.

        It is what the inputs `lengths` or `padding_mask` say, if there are any;
        else tokens up to the last that is not `padding_value`.
        """
        if isinstance(self.inputs, Mapping):
            if "lengths" in self.inputs:
                return np.asarray(self.inputs["lengths"]).reshape(-1)
            if "padding_mask" in self.inputs:
                mask = np.asarray(self.inputs["padding_mask"], "bool")
                return np.sum(mask, axis=1)
        tokens = _find_tokens(self.inputs)
        used = np.any(
            (tokens != padding_value).reshape(*tokens.shape[:2], -1), axis=2
        )
        return np.where(
            used.any(axis=1), used.shape[1] - used[:, ::-1].argmax(axis=1), 0
        )

    def _map(self, function: Callable[[Array], Array]) -> "Examples":
        return Examples(
            _map(function, self.inputs),
            _map(function, self.targets),
            _map(function, self.sample_weight),
            self.used_width,
        )


def read_examples(
    data: Any, lengths: Collection[int] | None, padding_value: float
) -> dict[int, Examples]:
    """Reads the examples of each length.

    Args:
        data: See `evaluate_by_length`.
        lengths: Lengths that are wanted; `None`: all that `data` has.
        padding_value: Number that stands for padding in the inputs.

    Returns:
        Dict from lengths, increasing, to their examples.

    Raises:
        ValueError: If `data` has another form, or has no examples of a length.
    """
    if callable(data) and not isinstance(data, keras.utils.PyDataset):
        if lengths is None:
            raise ValueError(
                "lengths must be given if data is a function of a length; "
                "got lengths=None."
            )
        return {
            length: _read_length(data(length), length, padding_value)
            for length in lengths
        }
    if isinstance(data, Mapping) and all(
        isinstance(key, (int, np.integer)) for key in data
    ):
        wanted = sorted(data) if lengths is None else lengths
        missing = [length for length in wanted if length not in data]
        if missing:
            raise ValueError(
                f"data has no examples of length {missing[0]}; its lengths "
                f"are {sorted(data)}."
            )
        return {
            length: _read_length(data[length], length, padding_value)
            for length in wanted
        }
    return _group(_read(data, "data", padding_value), lengths, padding_value)


def _group(
    examples: Examples, lengths: Collection[int] | None, padding_value: float
) -> dict[int, Examples]:
    """Groups padded examples by true length, up to the next of `lengths`."""
    true = examples.measure_lengths(padding_value)
    ends = np.unique(true[true > 0]) if lengths is None else np.array(lengths)
    groups = np.searchsorted(ends, true)
    found = {}
    for index, end in enumerate(ends):
        chosen = (groups == index) & (true > 0)
        group = examples.select(chosen)
        used = int(true[chosen].max(initial=0))
        found[int(end)] = dataclasses.replace(group, used_width=used)
    empty = [length for length, group in found.items() if not group.count]
    if empty:
        raise ValueError(
            f"data has no examples for length {empty[0]}; true lengths range "
            f"from {true.min()} to {true.max()}. Each of lengths is the "
            "longest length of a group."
        )
    return found


def _read_length(data: Any, length: int, padding_value: float) -> Examples:
    return _read(data, f"data of length {length}", padding_value)


def _read(data: Any, name: str, padding_value: float) -> Examples:
    """Reads arrays, or batches of arrays."""
    if data is None:
        raise ValueError(f"{name} must be {FORMS}; got None.")
    if isinstance(data, (tuple, Mapping)) or hasattr(data, "shape"):
        batches = [data]
    else:
        try:
            batches = list(_iterate(data))
        except TypeError as error:
            raise ValueError(
                f"{name} must be {FORMS}; got {type(data).__name__}."
            ) from error
    found = [_to_examples(batch) for batch in batches]
    if not found or not found[0].count:
        raise ValueError(f"{name} has no examples.")
    width = max(examples.width for examples in found)
    found = [examples.resize(width, padding_value) for examples in found]
    try:
        return Examples(
            _concatenate([each.inputs for each in found]),
            _concatenate([each.targets for each in found]),
            _concatenate([each.sample_weight for each in found]),
            width,
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the batches of {name} must have the same structure, and the same "
            f"shapes but for the numbers of examples and tokens: {error}"
        ) from error


def _iterate(data: Any) -> Iterator[Any]:
    if isinstance(data, keras.utils.PyDataset):
        return (data[index] for index in range(len(data)))
    return iter(data)


def _to_examples(batch: Any) -> Examples:
    # A DataLoader of PyTorch gives lists.
    batch = tuple(batch) if isinstance(batch, list) else batch
    inputs, targets, weights = (
        _map(_to_array, part)
        for part in keras.utils.unpack_x_y_sample_weight(batch)
    )
    width = int(_find_tokens(inputs).shape[1])
    return Examples(inputs, targets, weights, width)


def _map(function: Callable[[Any], Array], part: Any) -> Any:
    return None if part is None else keras.tree.map_structure(function, part)


def _to_array(value: Any) -> Array:
    if keras.ops.is_tensor(value):
        return np.asarray(keras.ops.convert_to_numpy(value))
    return np.asarray(value)


def _concatenate(parts: Sequence[Any]) -> Any:
    if parts[0] is None:
        return None
    return keras.tree.map_structure(
        lambda *arrays: np.concatenate(arrays), *parts
    )


def _find_tokens(inputs: Any) -> Array:
    """Returns the first input with an axis of tokens."""
    for array in keras.tree.flatten(inputs):
        if array.ndim >= 2:
            return array
    raise ValueError(
        "inputs must be batched, with an axis of tokens behind that of the "
        "examples: (N, T) or (N, T, ...)."
    )
