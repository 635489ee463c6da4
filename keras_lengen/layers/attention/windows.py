"""Sliding windows: which keys they show, in chunks and with a rolling cache.

A window counts tokens by *rank*, the number of real tokens before a token, so
that padding changes nothing.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_lengen.checks.inputs import as_size
from keras_lengen.layers.attention.call import Tensors
from keras_lengen.layers.attention.visibility import Reach
from keras_lengen.layers.documents import Documents
from keras_lengen.layers.real_tokens import (
    order_real_tokens,
    rank_real_tokens,
)
from keras_lengen.types import Positions, Size, Tensor


class Window(NamedTuple):
    """The tokens of a call of attention with a sliding window.

    Attributes:
        ranks: Ranks of the queries, int32 `(T,)` or `(B, T)`.
        key_ranks: Ranks of the keys, int32 `(S,)` or `(B, S)`; -1 for padding
            and for empty entries of a cache.
        sliced: bool, whether chunks of queries may read only the keys near
            them.
        source: Index among the new tokens of the one that each entry of the
            cache holds after the call, int32 `(slots,)` or `(B, slots)`;
            `None` without a cache.
        fresh: Boolean tensor of the same shape, false for entries that stay.
        attends: str, the keys to attend to with a cache: `"new"`, the new
            tokens; `"cache"`, the updated cache; or `"both"`, the old cache
            and then the new tokens.
    """

    ranks: Tensor
    key_ranks: Tensor
    sliced: bool = False
    source: Tensor | None = None
    fresh: Tensor | None = None
    attends: str = "new"


def place_tokens(
    indices: Tensor,
    keys: Size,
    mask: Tensor | None,
    *,
    sliced: bool,
    documents: tuple[Documents, Documents] | None = None,
) -> Window:
    """Finds the ranks of tokens if every key has an entry of its own.

    Args:
        indices: Indices of the queries among the keys, int32 `(T,)`.
        keys: Number of keys `S`.
        mask: Boolean tensor `(B, S)`, true for real keys, or `None`.
        sliced: bool, whether chunks may read only the keys near them.
        documents: `Documents` of queries and keys, in which tokens are then
            ranked; or `None`.

    Returns:
        `Window`.
    """
    if documents is not None:
        ranks, key_ranks = (each.ranks for each in documents)
        if mask is not None:
            key_ranks = ops.where(mask, key_ranks, -1)
        return Window(ranks, key_ranks)
    if mask is None:
        return Window(indices, ops.arange(keys, dtype="int32"), sliced)
    key_ranks = rank_real_tokens(mask)
    ranks = ops.take(key_ranks, indices, axis=-1)
    return Window(ranks, ops.where(mask, key_ranks, -1), sliced)


def place_in_rolling_cache(
    index: Size,
    tokens: Size,
    slots: Size,
    reach: Reach,
    mask: Tensor | None,
    positions: Positions | None,
) -> tuple[Window, Positions | None]:
    """Finds out which tokens a rolling cache holds before and after a call.

    Args:
        index: int or scalar integer tensor, index of the first new token.
        tokens: Number of new tokens `T`.
        slots: Number of entries of the cache.
        reach: `Reach` of the window.
        mask: Boolean tensor `(B, N)`, true for the real tokens of the whole
            sequence, or `None`.
        positions: Positions of the tokens of the whole sequence, `(N,)` or
            `(B, N)`, or `None` if those of the keys are not needed.

    Returns:
        `Window`, and the positions of the keys to attend to.
    """
    indices = index + ops.arange(tokens, dtype="int32")
    order, ranks = None, indices
    before, after = index, index + as_size(tokens)
    if mask is not None:
        order = order_real_tokens(mask)
        ranks = ops.take(rank_real_tokens(mask), indices, axis=-1)
        number = ops.arange(ops.shape(mask)[-1], dtype="int32")
        before, after = (
            ops.sum(
                ops.cast(ops.logical_and(mask, number < end), "int32"), axis=-1
            )
            for end in (before, after)
        )
    before, after = (
        ops.cast(ops.convert_to_tensor(count), "int32")
        for count in (before, after)
    )
    held = reach.list_held(after, slots)
    source = _find_indices(held, order)
    window = Window(
        ranks=ranks,
        key_ranks=held,
        source=ops.clip(source - index, 0, as_size(tokens) - 1),
        fresh=held >= ops.expand_dims(before, -1),
        attends="cache",
    )
    if isinstance(tokens, int) and tokens == 1:
        return window, take_positions(positions, source)
    new_ranks = ranks
    if mask is not None:
        real = ops.take(mask, indices, axis=-1)
        new_ranks = ops.where(real, ranks, -1)
    if isinstance(index, int) and index == 0:
        window = window._replace(key_ranks=new_ranks, attends="new")
        return window, take_positions(positions, indices)
    held = reach.list_held(before, slots)
    keys = [_find_indices(held, order), indices]
    if order is not None:
        batch_size = ops.shape(order)[0]
        keys[1] = ops.broadcast_to(indices, (batch_size, tokens))
    return (
        window._replace(
            key_ranks=ops.concatenate([held, new_ranks], axis=-1),
            attends="both",
        ),
        take_positions(positions, ops.concatenate(keys, axis=-1)),
    )


def update_rolling_cache(
    cache: Tensors, keys: Tensors, window: Window
) -> tuple[Tensors, Tensors]:
    """Writes new keys and values to a rolling cache.

    Args:
        cache: Dict of tensors `(B, slots, heads, width)`.
        keys: Dict of those of new tokens, `(B, T, heads, width)`.
        window: `Window` of the call.

    Returns:
        Keys and values to attend to, and the updated cache.
    """
    fresh = ops.expand_dims(window.fresh, (-1, -2))

    def write(old: Tensor, new: Tensor) -> Tensor:
        if new.shape[1] != 1:
            new = take_tokens(new, window.source)
        return ops.where(fresh, new, old)

    new = {name: ops.cast(keys[name], cache[name].dtype) for name in cache}
    updated = {name: write(cache[name], new[name]) for name in cache}
    if window.attends == "cache":
        return updated, updated
    if window.attends == "new":
        return keys, updated
    joined = {
        name: ops.concatenate([cache[name], new[name]], axis=1)
        for name in cache
    }
    return joined, updated


def take_tokens(features: Tensor, indices: Tensor) -> Tensor:
    """Takes tokens from `(B, T, ...)` by indices `(N,)` or `(B, N)`."""
    if len(indices.shape) == 1:
        return ops.take(features, indices, axis=1)
    batch_size, tokens, *shape = ops.shape(features)
    first = ops.arange(batch_size, dtype="int32") * tokens
    flat = ops.reshape(features, (-1, *shape))
    taken = ops.take(flat, indices + ops.expand_dims(first, -1), axis=0)
    return ops.reshape(taken, (batch_size, -1, *shape))


def _find_indices(ranks: Tensor, order: Tensor | None) -> Tensor:
    """Returns the indices of tokens from their ranks, 0 for -1."""
    ranks = ops.maximum(ranks, 0)
    if order is None:
        return ranks
    return ops.take_along_axis(order, ranks, axis=-1)


def take_positions(positions: Positions | None, indices: Tensor) -> Any:
    """Takes the positions of tokens by indices `(N,)` or `(B, N)`."""

    def take(axis: Tensor) -> Tensor:
        if len(axis.shape) == 1 or len(indices.shape) == 1:
            return ops.take(axis, indices, axis=-1)
        return ops.take_along_axis(axis, indices, axis=-1)

    if positions is None:
        return None
    return keras.tree.map_structure(take, positions)
