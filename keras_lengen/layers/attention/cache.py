"""Cache of the keys and values of earlier calls, and their positions."""

from typing import Any, TypeAlias

import keras
from keras import ops

from keras_lengen.checks.arguments import Integer, described
from keras_lengen.checks.guards import guard
from keras_lengen.checks.inputs import (
    as_size,
    check_rank,
    compare_sizes,
    find_size,
    find_static_size,
    format_size,
    guard_same_size,
    read_index,
)
from keras_lengen.layers.attention.windows import (
    Window,
    count_slots,
    update_ring,
)
from keras_lengen.layers.documents import Documents
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.types import Positions, Size, Tensor

Cache: TypeAlias = tuple[Tensor, Tensor]
"""Keys and values, each `(B, S, heads, width)`."""


class CachedKeys(keras.layers.Layer):
    """Base class of attention whose keys and values may come from a cache.

    Subclasses have the attributes `num_heads`, `num_key_value_heads`,
    `key_dim`, `value_width`, `encoding`, `sliding_window` and `sink_tokens`.
    """

    @property
    def keeps_ring(self) -> bool:
        """Whether a cache holds only the keys in the sliding window.

        Encodings that need the keys between a key and a query, or the rank of
        a key among all keys, get a cache of all keys.
        """
        encoding = self.encoding
        return self.sliding_window is not None and not (
            encoding.counts_tokens or encoding.reads_ranks
        )

    @property
    def cached_widths(self) -> tuple[int, int]:
        """Widths of a head's keys and of its values in a cache."""
        keys = self.key_dim * self.encoding.rotations
        if self.encoding.reads_inputs:
            keys += self.key_dim // 2
        return keys, self.value_width

    def make_cache(self, batch_size: Size, length: Size) -> Cache:
        """Makes an empty cache, to be passed as `cache`.

        Args:
            batch_size: int, at least 1, or scalar integer tensor.
            length: int, at least 1, or scalar integer tensor. Number of tokens
                of the whole sequence.

        Returns:
            A pair of zeros in the compute dtype: keys
            `(batch_size, slots, heads, key_dim)` and values
            `(batch_size, slots, heads, value_dim)`, where `heads` is
            `num_key_value_heads`. Keys that the encoding rotates more than
            once, or whose rotation depends on their tokens, are wider. A
            subclass may have other widths. `slots` is
            `length`, but at most `sliding_window + sink_tokens` if there is
            a window: new keys then replace those that left it.

        Raises:
            ValueError: If `batch_size` or `length` is not a positive integer.
        """
        for name, size in (("batch_size", batch_size), ("length", length)):
            if not ops.is_tensor(size):
                Integer().check(name, size)
        if self.keeps_ring:
            length = count_slots(self.sliding_window, self.sink_tokens, length)
        heads = self.num_key_value_heads or self.num_heads
        return tuple(
            ops.zeros(
                (batch_size, length, heads, width), dtype=self.compute_dtype
            )
            for width in self.cached_widths
        )

    def check_cache(self, cache: Any) -> None:
        """Checks that a cache has the form that `make_cache` returns.

        Args:
            cache: The value to check.

        Raises:
            ValueError: If `cache` is not a pair of keys and values of the
                right shapes.
        """
        heads = self.num_key_value_heads or self.num_heads
        widths = self.cached_widths
        shapes = [f"(B, S, {heads}, {width})" for width in widths]
        pair = "a pair of keys {} and values {}, as `make_cache` makes it"
        pair = pair.format(*shapes)
        if not (isinstance(cache, tuple | list) and len(cache) == 2):
            raise ValueError(f"cache must be {pair}; got {described(cache)}.")
        for tensor, width, shape in zip(cache, widths, shapes, strict=True):
            check_rank("cache", tensor, (4,), shape)
            if tuple(tensor.shape[2:]) != (heads, width):
                raise ValueError(
                    f"cache must be {pair}; got one of shape "
                    f"{tuple(tensor.shape)}."
                )


def read_cache(
    layer: CachedKeys,
    tensors: dict[str, Any],
    index: Size | None,
    key: Tensor,
    mask: Tensor | None,
    whole: Tensor | None,
) -> tuple[dict[str, Any], Size | None]:
    """Reads the cache and the index of the first new token.

    Args:
        layer: Attention, a `CachedKeys`.
        tensors: Dict of the cache, a pair or `None`, and of other tensors to
            be guarded.
        index: Value of `cache_update_index`.
        key: Tensor `(B, T, M)` of the new tokens; only its shape is read.
        mask: Mask of the keys, or `None`.
        whole: Tensor `(B, N, ...)`, an entry for each token of the whole
            sequence, or `None` if their number is not known; only its shape
            is read.

    Returns:
        The guarded tensors, and the index, an int, a tensor or `None`.

    Raises:
        ValueError: If something is known not to fit the cache.
    """
    cache = tensors["cache"]
    if cache is None:
        if index is not None:
            raise ValueError(
                "cache_update_index is given without a cache: pass "
                "`cache`, as `make_cache` makes it."
            )
        return tensors, None
    for tensor in cache:
        tensors = guard_same_size(tensors, 0, cache=tensor, query=key)
    slots, values = (find_size(tensor, 1) for tensor in cache)
    tensors = guard(
        tensors,
        compare_sizes(slots, values),
        "cache must hold as many keys as values; got ",
        format_size(slots),
        " and ",
        format_size(values),
        ".",
    )
    if whole is not None:
        _check_cached_mask(mask, find_size(whole, 1))
    if index is None:
        return tensors, None
    index, tokens = read_index("cache_update_index", index), find_size(key, 1)
    inside = index + as_size(tokens) <= as_size(slots)
    if layer.keeps_ring:
        # New keys may replace earlier ones only if these have left the window.
        wraps = as_size(slots) >= layer.sliding_window + layer.sink_tokens
        inside = wraps or inside if isinstance(wraps, bool) else wraps | inside
    if not isinstance(index, int):
        inside = ops.logical_and(index >= 0, inside)
    tensors = guard(
        tensors,
        inside,
        format_size(tokens),
        " new tokens from cache_update_index=",
        format_size(index),
        " on do not fit into a cache of ",
        format_size(slots),
        ": make a longer cache.",
    )
    return tensors, index


def _check_cached_mask(mask: Tensor | None, slots: Size) -> None:
    """Raises `ValueError` if a mask is known to cover a part of the cache."""
    if mask is None or len(getattr(mask, "shape", ())) != 2:
        return
    size, known = find_static_size(mask.shape[1]), find_static_size(slots)
    if None not in (size, known) and size != known:
        raise ValueError(
            f"with a cache of {slots} tokens, the mask of the keys "
            f"must cover all of them; got one of {size}: pass "
            "`value_mask`."
        )


def check_cached_positions(
    encoding: PositionalEncoding,
    positions: Positions | None,
    key_positions: Positions | None,
    *,
    is_self: bool,
) -> None:
    """Raises `ValueError` if calls may disagree on a token's position."""
    if encoding.stage is None:
        return
    if key_positions is None and encoding.sampler.draws:
        raise ValueError(
            f"{type(encoding.sampler).__name__} draws anew in every "
            "call, but cached keys keep their positions: draw once for "
            "the whole sequence and pass `positions` and `key_positions`."
        )
    # Where keys are rotated once, their positions are not read again.
    of_all_keys = key_positions is not None or (
        encoding.stage == "rotation" and not encoding.reads_key_positions
    )
    if is_self and positions is not None and not of_all_keys:
        raise ValueError(
            "with a cache, `positions` are only those of the new tokens: "
            "also pass `key_positions`, those of all tokens in the cache."
        )
    if positions is None and not is_self:
        raise ValueError(
            "with a cache, the positions of queries that are not its new "
            "tokens are unknown: pass their `positions`."
        )


def find_new_positions(
    key_positions: Positions, index: Size | None, tokens: Tensor
) -> Positions | None:
    """Reads the positions of the new tokens from those of the whole cache.

    Args:
        key_positions: Tensor `(S,)` or `(B, S)`, or a pair of these.
        index: int or scalar integer tensor, index of the first new token, or
            `None`.
        tokens: Tensor `(B, T, ...)`, the new tokens; only its shape is read.

    Returns:
        Tensor `(T,)` or `(B, T)`, or a pair of these; `None` without an index.
    """
    if index is None:
        return None
    indices = index + ops.arange(ops.shape(tokens)[1], dtype="int32")
    return keras.tree.map_structure(
        lambda axis: ops.take(axis, indices, axis=-1), key_positions
    )


def find_sequence_length(
    key_mask: Tensor | None,
    whole: Tensor | None,
    documents: Documents | None = None,
) -> Size | None:
    """Finds the length of the whole sequence from a mask or its tokens.

    Args:
        key_mask: Boolean tensor `(B, S)`, true for real keys, or `None`.
        whole: Tensor `(B, S, ...)`, the tokens in a cache, or `None`.
        documents: `Documents` of the tokens, or `None`.

    Returns:
        The number of real keys, int32 `(B,)`, or of those in each token's
        document, `(B, T)`; or the number of tokens; `None` if all arguments
        are `None`.
    """
    if documents is not None:
        return documents.lengths
    if key_mask is not None:
        return ops.sum(ops.cast(key_mask, "int32"), axis=-1)
    return None if whole is None else ops.shape(whole)[1]


def update_cache(
    cache: Cache,
    key: Tensor | None,
    value: Tensor | None,
    index: Size | None,
    window: Window | None = None,
) -> tuple[Tensor, Tensor, Cache]:
    """Writes new keys and values to a cache, from an index on.

    Args:
        cache: Pair of keys and values `(B, S, heads, width)`.
        key: New keys `(B, T, heads, width)`, or `None`.
        value: New values `(B, T, heads, width)`, or `None`.
        index: int or scalar integer tensor, or `None` to write nothing.
        window: `Window`, or `None` without a sliding window.

    Returns:
        Keys and values to attend to, and the new cache.
    """
    if window is not None and window.source is not None:
        return update_ring(cache, key, value, window)
    if index is None:
        return *cache, tuple(cache)
    cache = tuple(
        ops.slice_update(old, (0, index, 0, 0), ops.cast(new, old.dtype))
        for old, new in zip(cache, (key, value), strict=True)
    )
    return *cache, cache
