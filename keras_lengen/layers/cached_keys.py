"""Cache of the keys and values of earlier calls, and their positions."""

import functools

import keras
from keras import ops

from keras_lengen.arguments import check_integer, described
from keras_lengen.layers.side_inputs import (
    as_size,
    both,
    check_index,
    check_rank,
    check_same_size,
    compare_sizes,
    demand,
    find_size,
    find_static_size,
    format_size,
)


class CachedKeys(keras.layers.Layer):
    """Base class of attention whose keys and values may come from a cache.

    Subclasses have the attributes `num_heads`, `num_key_value_heads`,
    `key_dim`, `value_dim` and `encoding`.
    """

    @property
    def cached_widths(self):
        """Widths of a head's keys and of its values in a cache."""
        return self.key_dim, self.value_dim

    def make_cache(self, batch_size, length):
        """Makes an empty cache, to be passed as `cache`.

        Args:
            batch_size: int, at least 1, or scalar integer tensor.
            length: int, at least 1, or scalar integer tensor. Number of tokens
                that the cache has room for.

        Returns:
            A pair of zeros in the compute dtype: keys
            `(batch_size, length, heads, key_dim)` and values
            `(batch_size, length, heads, value_dim)`, where `heads` is
            `num_key_value_heads`. A subclass may have other widths.

        Raises:
            ValueError: If `batch_size` or `length` is not a positive integer.
        """
        for name, size in (("batch_size", batch_size), ("length", length)):
            if not ops.is_tensor(size):
                check_integer(name, size)
        heads = self.num_key_value_heads or self.num_heads
        return tuple(
            ops.zeros(
                (batch_size, length, heads, width), dtype=self.compute_dtype
            )
            for width in self.cached_widths
        )

    def check_cache(self, cache):
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

    def _check_cache(self, cache, mask, key, index):
        """Checks that the mask and the new keys fit the cache.

        Returns:
            The checked index, and for `where_holds` whether everything fits:
            `True`, or a boolean tensor if this is known only at run time.
        """
        if cache is None:
            if index is not None:
                raise ValueError(
                    "cache_update_index is given without a cache: pass "
                    "`cache`, as `make_cache` makes it."
                )
            return None, True
        self.check_cache(cache)
        holds = True
        for tensor in cache:
            holds = both(holds, check_same_size(0, cache=tensor, query=key))
        slots, tokens = find_size(cache[0], 1), find_size(key, 1)
        holds = both(
            holds,
            demand(
                compare_sizes(slots, find_size(cache[1], 1)),
                "cache must hold as many keys as values; got ",
                format_size(slots),
                " and ",
                format_size(find_size(cache[1], 1)),
                ".",
            ),
        )
        if len(getattr(mask, "shape", ())) == 2:
            size, known = (
                find_static_size(mask.shape[1]),
                find_static_size(slots),
            )
            if None not in (size, known) and size != known:
                raise ValueError(
                    f"with a cache of {slots} tokens, the mask of the keys "
                    f"must cover all of them; got one of {size}: pass "
                    "`value_mask`."
                )
        if index is None:
            return None, holds
        index = check_index("cache_update_index", index)
        last = index + as_size(tokens)
        inside = last <= as_size(slots)
        if not isinstance(index, int):
            inside = ops.logical_and(index >= 0, inside)
        return index, both(
            holds,
            demand(
                inside,
                format_size(tokens),
                " new tokens from cache_update_index=",
                format_size(index),
                " on do not fit into a cache of ",
                format_size(slots),
                ": make a longer cache.",
            ),
        )

    def _check_drawn_apart(self, positions, key_positions):
        """Raises `ValueError` if queries and keys would get separate draws."""
        drawn = self.encoding.stage is not None and self.encoding.sampler.draws
        if drawn and (positions is None or key_positions is None):
            raise ValueError(
                f"{type(self.encoding.sampler).__name__} would draw the "
                "positions of queries and keys apart from each other. In "
                "self-attention, pass one tensor as query and value, computed "
                "once; otherwise pass `positions` and `key_positions`."
            )

    def _check_cached_positions(self, positions, key_positions, *, own):
        """Raises `ValueError` if calls may disagree on a token's position."""
        if self.encoding.stage is None:
            return
        if key_positions is None and self.encoding.sampler.draws:
            raise ValueError(
                f"{type(self.encoding.sampler).__name__} draws anew in every "
                "call, but cached keys keep their positions: draw once for "
                "the whole sequence and pass `positions` and `key_positions`."
            )
        of_all_keys = key_positions is not None or self.encoding.stage != "bias"
        if own and positions is not None and not of_all_keys:
            raise ValueError(
                "with a cache, `positions` are only those of the new tokens: "
                "also pass `key_positions`, those of all tokens in the cache."
            )
        if positions is None and not own:
            raise ValueError(
                "with a cache, the positions of queries that are not its new "
                "tokens are unknown: pass their `positions`."
            )

    def _find_positions(
        self,
        query,
        key,
        positions,
        key_positions,
        *,
        own,
        query_mask,
        key_mask,
        cache,
        start_index,
        training,
    ):
        """Returns positions of the queries, of all keys, and of the new keys.

        The positions of the new keys are `None` if there are none.
        """
        sample = functools.partial(
            self.encoding.sample_positions, training=training
        )
        if positions is not None:
            positions = self.encoding.given_positions(positions, query)
        if key_positions is not None:
            key_positions = self.encoding.given_positions(
                key_positions,
                key if cache is None else cache[0],
                name="key_positions",
            )
        if cache is None:
            if not own:
                self._check_drawn_apart(positions, key_positions)
            if positions is None:
                positions = sample(query, mask=query_mask)
            if key_positions is None:
                key_positions = positions if own else sample(key, mask=key_mask)
            return positions, key_positions, key_positions
        own = own and start_index is not None
        self._check_cached_positions(positions, key_positions, own=own)
        if key_positions is None:
            key_positions = sample(cache[0], mask=key_mask)
        new_positions = None
        if start_index is not None:
            indices = start_index + ops.arange(ops.shape(key)[1], dtype="int32")
            new_positions = keras.tree.map_structure(
                lambda axis: ops.take(axis, indices, axis=-1), key_positions
            )
        if not own:
            positions = sample(query) if positions is None else positions
        elif positions is None:
            positions = new_positions
        return positions, key_positions, positions if own else new_positions


def find_sequence_length(key_mask, cache):
    """Finds the length of the whole sequence from a mask or a cache.

    Args:
        key_mask: Boolean tensor `(B, S)`, true for real keys, or `None`.
        cache: Pair of keys and values `(B, S, heads, width)`, or `None`.

    Returns:
        The number of real keys, int32 `(B,)`, or the length of the cache;
        `None` if both arguments are `None`.
    """
    if key_mask is not None:
        return ops.sum(ops.cast(key_mask, "int32"), axis=-1)
    return None if cache is None else ops.shape(cache[0])[1]


def update_cache(cache, entries, index):
    """Writes new keys and values to a cache, from an index on.

    Args:
        cache: Pair of keys and values `(B, S, heads, width)`.
        entries: Pair of new keys and values `(B, T, heads, width)`.
        index: int or scalar integer tensor, or `None` to write nothing.

    Returns:
        The new pair of keys and values.
    """
    if index is None:
        return tuple(cache)
    return tuple(
        ops.slice_update(old, (0, index, 0, 0), ops.cast(new, old.dtype))
        for old, new in zip(cache, entries, strict=True)
    )
