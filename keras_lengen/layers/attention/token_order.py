"""Check that positions keep the order of the tokens."""

from typing import TypeVar

from keras import ops

from keras_lengen.checks.guards import guard
from keras_lengen.checks.inputs import find_static_size
from keras_lengen.layers.encodings.base import (
    PositionalEncoding,
    expand_positions,
)
from keras_lengen.layers.real_tokens import order_real_tokens
from keras_lengen.types import Positions, Size, Tensor

T = TypeVar("T")


def guard_order(
    guarded: T,
    encoding: PositionalEncoding,
    positions: Positions,
    key_positions: Positions,
    *,
    index: Size | None,
    mask: Tensor | None,
    documents: Tensor | None = None,
) -> T:
    """Guards tensors by the condition that positions do not fall.

    Nothing is checked if the encoding needs no order, or its sampler keeps
    none.

    Args:
        guarded: Tensors to return, as for `guard`.
        encoding: `PositionalEncoding`.
        positions: Positions of the queries, a tensor `(T,)` or `(B, T)`; of
            pairs, the rows are checked.
        key_positions: Positions of the keys, a tensor `(S,)` or `(B, S)`, of
            which the queries are a part.
        index: int or scalar integer tensor, index of the first query among
            the keys, whose own order is not checked before it; or `None` if
            there are no other keys.
        mask: Boolean tensor `(B, S)`, true for real keys, or `None`.
        documents: Document of each token, int32 `(B, T)`, in which positions
            are counted anew; or `None`.

    Returns:
        The guarded tensors.
    """
    if not (
        encoding.requires_increasing_positions
        and encoding.sampler.is_increasing
    ):
        return guarded
    if encoding.position_axes == 2:
        # Columns begin anew in every row.
        positions, key_positions = positions[0], key_positions[0]
    message = (
        "positions must not fall from token to token in causal attention with "
        f"{type(encoding).__name__}, which takes keys at larger positions for "
        "later tokens: give it the sampler of the positions, or choose an "
        "encoding such as ClippedBias or RoPE."
    )
    first = 0 if index is None else index
    numbers, real = expand_positions(positions, 0), None
    tokens = find_static_size(ops.shape(numbers)[-1])
    is_first = isinstance(first, int) and first == 0
    if mask is not None:
        real = mask
        if not (is_first and mask.shape[-1] == tokens):
            indices = first + ops.arange(ops.shape(numbers)[-1], dtype="int32")
            real = ops.take(mask, indices, axis=-1)
    if tokens != 1:
        guarded = guard(guarded, _keep_order(numbers, real, documents), message)
    if is_first:
        return guarded
    keys = expand_positions(key_positions, 0)
    earlier = ops.arange(ops.shape(keys)[-1], dtype="int32") < first
    if mask is not None:
        earlier = ops.logical_and(earlier, mask)
        numbers = ops.where(real, numbers, float("inf"))
    last = ops.max(ops.where(earlier, keys, -float("inf")), axis=-1)
    # The comparison is false for NaN, a position invalid for another reason.
    return guard(
        guarded,
        ops.logical_not(last > ops.min(numbers, axis=-1)),
        message,
    )


def _keep_order(
    numbers: Tensor, real: Tensor | None, documents: Tensor | None
) -> Tensor:
    """Whether numbers `(T,)` or `(B, T)` do not fall, without padding."""
    if real is None and documents is None:
        return ops.logical_not(
            ops.any(numbers[..., 1:] < numbers[..., :-1], axis=-1)
        )
    ids = ops.zeros_like(real, "int32") if documents is None else documents
    numbers = numbers + ops.zeros_like(ids, "float32")
    if real is not None:
        order = order_real_tokens(real)
        numbers, ids, real = (
            ops.take_along_axis(each, order, axis=-1)
            for each in (numbers, ids, real)
        )
    # The comparison is false for NaN, which is invalid for another reason.
    falls = numbers[:, 1:] < numbers[:, :-1]
    falls = ops.logical_and(falls, ids[:, 1:] == ids[:, :-1])
    if real is not None:
        # Padding is behind all real tokens.
        falls = ops.logical_and(falls, real[:, 1:])
    return ops.logical_not(ops.any(falls, axis=-1))
