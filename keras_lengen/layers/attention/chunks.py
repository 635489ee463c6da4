"""Attention computed in chunks of queries, which saves memory."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import keras
from keras import ops

from keras_lengen.checks.arguments import Argument, Integer, InvalidArgument
from keras_lengen.layers.attention.visibility import Change
from keras_lengen.types import Shape, Size, Tensor

Finder: TypeAlias = Callable[[tuple[list[Tensor], list[Tensor]]], Tensor]
"""Function that finds a tensor of a chunk among its parts and whole tensors."""


class ChunkSize(Argument[int | Literal["auto"] | None]):
    """Number of queries in a chunk: an integer, `"auto"` or `None`."""

    def convert(self, value: Any) -> int | Literal["auto"] | None:
        if value is None:
            return None
        if isinstance(value, str) and value == "auto":
            return "auto"
        try:
            return Integer().convert(value)
        except InvalidArgument:
            raise InvalidArgument from None

    def describe(self) -> str:
        return '"auto", None or a positive integer'


@dataclasses.dataclass
class Cuts:
    """Tensors of which chunks of queries get a part, or the whole.

    The methods return functions that find the tensor of a chunk again, from
    the lists of the parts and of the whole tensors that the chunk gets.

    Attributes:
        size: int, at least 1. Number of queries in a chunk.
        parts: List of tensors with a first axis of chunks.
        whole: List of tensors that all chunks get.
    """

    size: int
    parts: list[Tensor] = dataclasses.field(default_factory=list)
    whole: list[Tensor] = dataclasses.field(default_factory=list)

    def split(self, tensor: Tensor, axis: int) -> Finder:
        """Gives each chunk a part of its own."""
        return self._add(_split(tensor, axis, self.size), axis)

    def split_near(
        self, tensor: Tensor, axis: int, before: int, after: int
    ) -> Finder:
        """Gives each chunk its own part with some entries around it."""
        tensor = ops.moveaxis(tensor, axis, 0)
        parts = _split_with_neighbours(tensor, self.size, before, after)
        return self._add(parts, axis)

    def keep(self, tensor: Tensor, axis: int) -> Finder:
        """Gives each chunk the whole tensor."""
        number = len(self.whole)
        self.whole.append(tensor)
        return lambda got: got[1][number]

    def keep_first(self, tensor: Tensor, axis: int, count: int) -> Finder:
        """Gives each chunk the first entries."""
        front = ops.moveaxis(tensor, axis, 0)[:count]
        return self.keep(ops.moveaxis(front, 0, axis), axis)

    def _add(self, parts: Tensor, axis: int) -> Finder:
        number = len(self.parts)
        self.parts.append(parts)
        return lambda got: ops.moveaxis(got[0][number], 0, axis)


def map_chunks(
    attend: Callable[[Change], Tensor],
    cuts: Cuts,
    *,
    tokens: Size,
    shape: Shape,
    dtype: str,
    variables: list[keras.Variable],
    generator: keras.random.SeedGenerator | None = None,
) -> Tensor:
    """Applies `attend` to one chunk of queries after the other.

    The intermediate results of a chunk are not kept; the backward pass
    computes them again. Memory therefore never holds the scores of more than
    one chunk, and grows with the length instead of with its square.

    Args:
        attend: Function of a function that finds the tensors of a chunk in
            place of what `cuts` has returned.
        cuts: `Cuts`.
        tokens: Number of queries.
        shape: Shape of the result of a chunk, `(B, size, H, value_dim)`.
        dtype: dtype of the result.
        variables: Variables that `attend` reads.
        generator: `SeedGenerator` that `attend` draws from, or `None`.

    Returns:
        Float tensor `(B, T, H, value_dim)`.
    """
    variables = [
        variable
        for variable in variables
        if keras.backend.is_float_dtype(variable.dtype)
    ]
    parts, chunks = list(cuts.parts), count_chunks(tokens, cuts.size)
    if generator is not None:
        # The random states are drawn outside the chunks, so that a chunk draws
        # the same numbers when the backward pass computes it again.
        parts.append(
            keras.random.randint(
                (chunks, 2), 0, 2**24, dtype="int32", seed=generator
            )
        )
    # Copies, which are tensors: a TensorFlow variable passed as an argument
    # gets no gradient in eager mode.
    values = [ops.copy(variable) for variable in variables]
    structure = (parts, cuts.whole, values)
    dtypes = [tensor.dtype for tensor in keras.tree.flatten(structure)]

    # Everything is an argument, because a tensor that is not an argument would
    # lose its gradient.
    @keras.remat
    def chunk(*tensors: Tensor) -> Tensor:
        parts, whole, values = keras.tree.pack_sequence_as(
            structure, list(map(ops.cast, tensors, dtypes))
        )
        states = list(zip(variables, values, strict=True))
        if generator is not None:
            seed = ops.cast(parts[-1], generator.state.dtype)
            states.append((generator.state, seed))
        with keras.StatelessScope(state_mapping=states):
            return attend(lambda find, axis: find((parts, whole)))

    # Cast outside the chunks, because each chunk would keep its own copy.
    fixed = [_cast_to_float(tensor) for tensor in (*cuts.whole, *values)]
    outputs = _map_one_by_one(
        lambda *slices: chunk(*map(_cast_to_float, slices), *fixed),
        parts,
        shape=shape,
        dtype=dtype,
    )
    # (chunks, B, size, ...) to (B, T, ...).
    outputs = ops.moveaxis(outputs, 0, 1)
    shape = ops.shape(outputs)
    outputs = ops.reshape(outputs, (shape[0], chunks * cuts.size, *shape[3:]))
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


def _split_with_neighbours(
    tensor: Tensor, chunk_size: int, before: int, after: int
) -> Tensor:
    """Splits the first axis into chunks that overlap.

    Args:
        tensor: `(T, ...)`.
        chunk_size: int, size of a chunk without its neighbours.
        before: int, number of entries before a chunk to add.
        after: int, number of entries behind it to add.

    Returns:
        `(chunks, before + chunk_size + after, ...)`, padded with zeros.
    """
    tokens, *shape = ops.shape(tensor)
    chunks = count_chunks(tokens, chunk_size)
    left, right = -(-before // chunk_size), -(-after // chunk_size)
    widths = [
        [left * chunk_size, (chunks + right) * chunk_size - tokens],
        *([[0, 0]] * len(shape)),
    ]
    blocks = ops.reshape(ops.pad(tensor, widths), (-1, chunk_size, *shape))
    joined = ops.concatenate(
        [blocks[start : start + chunks] for start in range(left + 1 + right)],
        axis=1,
    )
    start = left * chunk_size - before
    return joined[:, start : start + before + chunk_size + after]
