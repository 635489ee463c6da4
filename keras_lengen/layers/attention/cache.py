"""Cache of the keys and values of earlier calls, and their positions."""

from typing import Any, TypeAlias

import keras
import numpy as np
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
from keras_lengen.layers.attention.call import Tensors
from keras_lengen.layers.attention.call_arguments import Cache, CallArguments
from keras_lengen.layers.attention.windows import (
    Window,
    update_rolling_cache,
)
from keras_lengen.layers.documents import Documents
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.types import Positions, Size, Tensor, TensorLike

Sizes: TypeAlias = dict[str, tuple[int, int]]
"""Heads and width of the tensors of a cache, by name."""


class CachedKeys(keras.layers.Layer):
    """Base class of attention whose keys and values may come from a cache.

    Subclasses have the attributes `num_heads`, `num_key_value_heads`,
    `key_dim`, `value_width`, `encoding` and `sliding_window`, and the methods
    `make_rule` and `find_reach`.
    """

    @property
    def key_heads(self) -> int:
        """Number of heads of the keys and values."""
        return self.num_key_value_heads or self.num_heads

    @property
    def has_rolling_cache(self) -> bool:
        """Whether a cache holds only the keys in the sliding window.

        Parts that need the keys between a key and a query, or the rank of a
        key among all keys, get a cache of all keys.
        """
        return self.sliding_window is not None and self.make_rule(None).local

    def find_cached_sizes(self) -> Sizes:
        """Finds the tensors of a cache: heads and width of each."""
        heads = self.key_heads
        return {
            "key": (heads, self.key_dim * self.encoding.num_rotations),
            "value": (heads, self.value_width),
            **self.make_rule(None).cached_sizes(),
        }

    def make_cache(self, batch_size: Size, length: Size) -> Cache:
        """Makes an empty cache, to be passed as `cache`.

        Args:
            batch_size: int, at least 1, or scalar integer tensor.
            length: int, at least 1, or scalar integer tensor. Number of tokens
                of the whole sequence.

        Returns:
            A dict of zeros in the compute dtype: `"key"`
            `(batch_size, slots, heads, key_dim)` and `"value"`
            `(batch_size, slots, heads, value_dim)`, where `heads` is
            `num_key_value_heads`. Keys that the encoding rotates more than
            once are wider. There are more tensors if the layer or its encoding
            reads other things of earlier tokens, such as forget gates. `slots`
            is `length`, but at most `sliding_window + sink_tokens` if there is
            a window: new keys then replace those that left it.

        Raises:
            ValueError: If `batch_size` or `length` is not a positive integer.
        """
        for name, size in (("batch_size", batch_size), ("length", length)):
            if not ops.is_tensor(size):
                Integer().check(name, size)
        if self.has_rolling_cache:
            slots = self.find_reach(True).slots
            if isinstance(length, int):
                length = min(slots, length)
            else:
                length = ops.minimum(slots, as_size(length))
        return {
            name: ops.zeros(
                (batch_size, length, *size), dtype=self.compute_dtype
            )
            for name, size in self.find_cached_sizes().items()
        }

    def check_cache(self, cache: Any) -> None:
        """Checks that a cache has the form that `make_cache` returns.

        Args:
            cache: The value to check.

        Raises:
            ValueError: If `cache` is not a dict of tensors of the right
                names and shapes.
        """
        sizes = self.find_cached_sizes()
        shapes = {
            name: f"(B, S, {heads}, {width})"
            for name, (heads, width) in sizes.items()
        }
        wanted = ", ".join(f'"{name}" {shapes[name]}' for name in shapes)
        wanted = f"a dict of {wanted}, as `make_cache` makes it"
        if not isinstance(cache, dict):
            raise ValueError(f"cache must be {wanted}; got {described(cache)}.")
        if cache.keys() != sizes.keys():
            names = ", ".join(map(repr, cache)) or "none"
            raise ValueError(f"cache must be {wanted}; got the names {names}.")
        for name, size in sizes.items():
            tensor = cache[name]
            check_rank(f'cache["{name}"]', tensor, (4,), shapes[name])
            if tuple(tensor.shape[2:]) != size:
                raise ValueError(
                    f'cache must be {wanted}; got "{name}" of shape '
                    f"{tuple(tensor.shape)}."
                )


def check_rolling_cache(layer: CachedKeys, given: CallArguments) -> None:
    """Raises `ValueError` if a call cannot use a cache of latest keys only.

    Args:
        layer: Attention with a `sliding_window`.
        given: `CallArguments` with a cache.
    """
    for wrong, remedy in (
        (not given.use_causal_mask, "set use_causal_mask"),
        (given.cache_update_index is None, "pass cache_update_index"),
        (given.attention_mask is not None, "leave attention_mask out"),
        (given.return_attention_scores, "leave return_attention_scores out"),
    ):
        if wrong:
            raise ValueError(
                f"with sliding_window={layer.sliding_window}, a cache holds "
                f"only the keys that later tokens can see: {remedy}, or do "
                "without a cache."
            )


def find_whole(
    layer: CachedKeys,
    key: Tensor,
    cache: Cache | None,
    index: Size | None,
    given: tuple[TensorLike | None, ...],
) -> Tensor | None:
    """Finds a tensor with an entry for each token of the whole sequence.

    Args:
        layer: Attention.
        key: `(B, S, M)`.
        cache: Dict of keys and values, or `None`.
        index: Value of `cache_update_index`.
        given: Tuple of a mask and of positions of all keys, or `None`.

    Returns:
        Tensor `(B, N, ...)`; `None` if the number of tokens is not known.
    """
    if cache is None:
        return key
    layer.check_cache(cache)
    if not layer.has_rolling_cache:
        return cache["key"]
    sizes = [
        shape[-1]
        for shape in map(np.shape, keras.tree.flatten(given))
        if len(shape) > 0
    ]
    tokens = sizes[0] if sizes else None
    if tokens is None and isinstance(index, int):
        tokens = index + as_size(find_size(key, 1))
    if tokens is None:
        return None
    return ops.zeros((find_size(key, 0), tokens), dtype="bool")


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
        tensors: Dict of the cache, a dict or `None`, and of other tensors to
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
    slots = find_size(cache["key"], 1)
    for name, tensor in cache.items():
        tensors = guard_same_size(tensors, 0, cache=tensor, query=key)
        others = find_size(tensor, 1)
        tensors = guard(
            tensors,
            compare_sizes(slots, others),
            "all tensors of a cache must hold as many tokens; got ",
            format_size(slots),
            ' for "key" and ',
            format_size(others),
            f' for "{name}".',
        )
    if whole is not None:
        _check_cached_mask(mask, find_size(whole, 1))
    if index is None:
        return tensors, None
    index, tokens = read_index("cache_update_index", index), find_size(key, 1)
    inside = index + as_size(tokens) <= as_size(slots)
    if layer.has_rolling_cache:
        # New keys may replace earlier ones only if these have left the window.
        wraps = as_size(slots) >= layer.find_reach(True).slots
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
    if key_positions is None and encoding.sampler.is_random:
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
    keys: Tensors,
    index: Size | None,
    window: Window | None = None,
) -> tuple[Tensors, Cache]:
    """Writes new keys and values to a cache, from an index on.

    Args:
        cache: Dict of tensors `(B, S, heads, width)`.
        keys: Dict of those of new tokens, `(B, T, heads, width)`.
        index: int or scalar integer tensor, or `None` to write nothing.
        window: `Window`, or `None` without a sliding window.

    Returns:
        Keys and values to attend to, and the new cache.
    """
    if index is None:
        return dict(cache), dict(cache)
    if window is not None and window.source is not None:
        return update_rolling_cache(cache, keys, window)
    start = (0, index, 0, 0)
    cache = {
        name: ops.slice_update(old, start, ops.cast(keys[name], old.dtype))
        for name, old in cache.items()
    }
    return cache, dict(cache)
