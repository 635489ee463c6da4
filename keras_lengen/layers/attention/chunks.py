"""Attention computed in chunks of queries, which saves memory."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import keras
from keras import ops

from keras_lengen.checks.arguments import Argument, Integer, Mistake
from keras_lengen.types import Shape, Size, Tensor

Tensors: TypeAlias = dict[str, Any]
"""Tensors, or pairs of them, by name."""

QUERY_AXES = {
    "positions": -1,
    "indices": 0,
    "mask": 2,
    "ranks": -1,
    "near_positions": -1,
    "near_ranks": -1,
}
"""Index of the axis of the queries in their tensors, or of the keys in those of
the keys near them, where it is not 1."""


class ChunkSize(Argument[int | Literal["auto"] | None]):
    """Number of queries in a chunk: an integer, `"auto"` or `None`."""

    def convert(self, value: Any) -> int | Literal["auto"] | None:
        if value is None:
            return None
        if isinstance(value, str) and value == "auto":
            return "auto"
        try:
            return Integer().convert(value)
        except Mistake:
            raise Mistake from None

    def describe(self) -> str:
        return '"auto", None or a positive integer'


def attend_in_chunks(
    attend: Callable[[Tensors, Tensors], Tensor],
    queries: Tensors,
    keys_and_values: Tensors,
    *,
    chunk_size: int,
    shape: tuple[int, int],
    layer: keras.Layer,
    generator: keras.random.SeedGenerator | None = None,
    near: Tensors | None = None,
) -> Tensor:
    """Applies `attend` to one chunk of queries after the other.

    The intermediate results of a chunk are not kept; the backward pass
    computes them again. Memory therefore never holds the scores of more than
    one chunk, and grows with the length instead of with its square.

    Args:
        attend: Function `attend(queries, keys_and_values)` of a chunk of the
            queries and of all keys; it returns a float tensor
            `(B, chunk_size, H, value_dim)`.
        queries: Dict of the tensors that have an axis of queries, see
            `QUERY_AXES`. Each value is a tensor, a pair of tensors, or `None`.
        keys_and_values: Dict of the tensors that all chunks need, with values
            of the same kinds.
        chunk_size: int, at least 1. Number of queries in a chunk.
        shape: Tuple `(H, value_dim)` of the last axes of the result.
        layer: Layer whose variables `attend` reads.
        generator: `SeedGenerator` that `attend` draws from, or `None`.
        near: Dict of tensors that are split already, with a first axis of
            chunks. They are passed to `attend` with the queries.

    Returns:
        Float tensor `(B, T, H, value_dim)` of the dtype of the values.
    """
    tokens = ops.shape(queries["indices"])[0]
    chunks = count_chunks(tokens, chunk_size)
    near = near or {}
    absent = {
        name for name, tensor in (queries | near).items() if tensor is None
    }
    absent_keys = {
        name for name, tensor in keys_and_values.items() if tensor is None
    }
    keys_and_values = _drop_absent(keys_and_values)
    sliced = _map_tensors(
        lambda name, tensor: _split(
            tensor, QUERY_AXES.get(name, 1), chunk_size
        ),
        _drop_absent(queries),
    )
    sliced |= _drop_absent(near)
    variables = [
        variable
        for variable in layer.variables
        if keras.backend.is_float_dtype(variable.dtype)
    ]
    if generator is not None:
        # The random states are drawn outside the chunks, so that a chunk draws
        # the same numbers when the backward pass computes it again.
        sliced["seed"] = keras.random.randint(
            (chunks, 2), 0, 2**24, dtype="int32", seed=generator
        )
    # Copies, which are tensors: a TensorFlow variable passed as an argument
    # gets no gradient in eager mode.
    values = [ops.copy(variable) for variable in variables]
    structure = (sliced, values, keys_and_values)
    dtypes = [tensor.dtype for tensor in keras.tree.flatten(structure)]

    # Everything is an argument, because a tensor that is not an argument would
    # lose its gradient.
    @keras.remat
    def chunk(*tensors: Tensor) -> Tensor:
        slices, values, rest = keras.tree.pack_sequence_as(
            structure, list(map(ops.cast, tensors, dtypes))
        )
        states = list(zip(variables, values, strict=True))
        slices = dict(slices)
        if generator is not None:
            seed = ops.cast(slices.pop("seed"), generator.state.dtype)
            states.append((generator.state, seed))
        slices = _map_tensors(
            lambda name, tensor: ops.moveaxis(
                tensor, 0, QUERY_AXES.get(name, 1)
            ),
            slices,
        )
        with keras.StatelessScope(state_mapping=states):
            return attend(
                {**slices, **dict.fromkeys(absent)},
                {**rest, **dict.fromkeys(absent_keys)},
            )

    # Cast outside the chunks, because each chunk would keep its own copy.
    fixed = [*values, *map(_cast_to_float, keras.tree.flatten(keys_and_values))]
    batch_size = keys_and_values["value"].shape[0]
    outputs = _map_one_by_one(
        lambda *slices: chunk(*map(_cast_to_float, slices), *fixed),
        keras.tree.flatten(sliced),
        shape=(batch_size, chunk_size, *shape),
        dtype=keys_and_values["value"].dtype,
    )
    # (chunks, B, chunk_size, ...) to (B, T, ...).
    outputs = ops.moveaxis(outputs, 0, 1)
    shape = ops.shape(outputs)
    outputs = ops.reshape(outputs, (shape[0], chunks * chunk_size, *shape[3:]))
    return outputs[:, :tokens]


def count_chunks(tokens: Size, chunk_size: int) -> Size:
    """Counts the chunks of a number of tokens, the last of which may be short.

    In ONNX, a division of integers rounds towards zero, so that neither
    `-(-tokens // chunk_size)` nor `-tokens % chunk_size` is right.
    """
    return (tokens + chunk_size - 1) // chunk_size


def _map_one_by_one(
    function: Callable[..., Tensor],
    slices: list[Tensor],
    *,
    shape: Shape,
    dtype: str,
) -> Tensor:
    """Maps slices like `ops.map`, but strictly one after the other."""
    if keras.backend.backend() != "tensorflow":
        return ops.map(lambda slices: function(*slices), slices)
    import tensorflow as tf

    # ops.map computes ten slices at a time and holds the scores of all ten;
    # ops.scan has no gradient under XLA.
    return tf.map_fn(
        lambda slices: function(*slices),
        slices,
        fn_output_signature=tf.TensorSpec(shape, dtype),
        parallel_iterations=1,
    )


def _cast_to_float(tensor: Tensor) -> Tensor:
    # TensorFlow warns about arguments without a gradient. Positions, indices
    # and seeds below 2 ** 24 are exact in float32.
    if keras.backend.is_float_dtype(tensor.dtype):
        return tensor
    return ops.cast(tensor, "float32")


def _split(tensor: Tensor, axis: int, chunk_size: int) -> Tensor:
    """Splits an axis into chunks.

    Returns:
        `(chunks, chunk_size, ...)`, the axis moved to the front and padded
        with zeros at its end.
    """
    tensor = ops.moveaxis(tensor, axis, 0)
    tokens, *shape = ops.shape(tensor)
    padding = count_chunks(tokens, chunk_size) * chunk_size - tokens
    widths = [[0, padding]] + [[0, 0]] * len(shape)
    return ops.reshape(ops.pad(tensor, widths), (-1, chunk_size, *shape))


def _map_tensors(
    function: Callable[[str, Tensor], Tensor], tensors: Tensors
) -> Tensors:
    """Applies `function(name, tensor)` to all tensors and pairs of a dict."""
    return {
        name: keras.tree.map_structure(
            lambda tensor, name=name: function(name, tensor), value
        )
        for name, value in tensors.items()
    }


def _drop_absent(tensors: Tensors) -> Tensors:
    return {name: value for name, value in tensors.items() if value is not None}
