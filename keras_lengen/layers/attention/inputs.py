"""Reads the call arguments of attention and checks them once."""

import functools
from typing import Any, NamedTuple, TypeVar

import keras
from keras import ops

from keras_lengen.checks.arguments import Boolean
from keras_lengen.checks.guards import guard, mark_by_positions, mark_like
from keras_lengen.checks.inputs import (
    as_size,
    check_rank,
    compare_sizes,
    find_size,
    find_static_size,
    format_size,
    guard_same_size,
    read_mask,
    read_reference_length,
    read_segment_ids,
    read_truth_values,
)
from keras_lengen.layers.attention.axes import (
    FoldedAxes,
    fold_inputs,
    plan_axes,
)
from keras_lengen.layers.attention.cache import (
    CachedKeys,
    check_cached_positions,
    check_rolling_cache,
    find_new_positions,
    find_sequence_length,
    find_whole,
    read_cache,
)
from keras_lengen.layers.attention.call_arguments import Cache, CallArguments
from keras_lengen.layers.attention.context import (
    Context,
    check_own_tokens,
    make_context,
)
from keras_lengen.layers.attention.token_order import guard_order
from keras_lengen.layers.documents import find_documents
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.positions.placing import place_tokens
from keras_lengen.types import Positions, Size, Tensor, TensorLike

T = TypeVar("T")


class Inputs(NamedTuple):
    """Checked inputs of a call.

    Attributes:
        query: `(B, T, M)`.
        key: `(B, S, M)`, or `None` if all keys are in the cache.
        value: `(B, S, M)`, or `None` like `key`.
        cache: Dict of keys and values, or `None`.
        context: `Context`.
    """

    query: Tensor
    key: Tensor | None
    value: Tensor | None
    cache: Cache | None
    context: Context


def read_inputs(
    layer: CachedKeys,
    query: Tensor,
    value: Tensor,
    key: Tensor | None,
    given: CallArguments,
) -> Inputs:
    """Reads the arguments of a call of `MultiHeadAttention`.

    Args:
        layer: `MultiHeadAttention`.
        query: `(B, T, M)`, or a tensor with more axes.
        value: `(B, S, M)`, or a tensor with more axes.
        key: `(B, S, M)`, a tensor with more axes, or `None`.
        given: `CallArguments`.

    Returns:
        `Inputs`. What is found to be wrong only at run time makes the query and
        the value invalid.

    Raises:
        ValueError: If an argument is wrong.
    """
    Boolean().check("use_causal_mask", given.use_causal_mask)
    axes = plan_axes(layer.attention_axes, query, value, key, given)
    if axes is not None:
        query, value, key, given = fold_inputs(
            axes, query, value, key, given, layer.num_heads
        )
    return _Reader(layer, query, value, key, given).read(axes)


def take_checked(
    query: Tensor, value: Tensor, cache: Cache | None, context: Context
) -> Inputs:
    """Takes inputs of a model that has checked them, with their `Context`."""
    value = query if context.is_self else value
    new = value if context.new else None
    return Inputs(query, new, value, cache, context)


class _Reader:
    """Reads the arguments of one call, one kind after the other.

    Attributes:
        tensors: Dict of query, value, key and cache, each once, which are
            marked as invalid by what is found to be wrong at run time.
        query: `(B, T, M)`; of it and the next, only the shapes are read.
        key: `(B, S, M)`, the new keys.
        is_self: bool, whether the keys are the queries' own tokens.
        index: Index in the cache of the first new key, or `None`.
        whole: Tensor with an entry for each token of the whole sequence of
            keys, or `None` if their number is not known.
        query_mask: Boolean tensor `(B, T)`, true for real tokens, or `None`.
        key_mask: Boolean tensor `(B, S)`, or `None`.
        attention_mask: Boolean tensor `(1 or B, 1 or H, T, S)`, or `None`.
        documents: `Documents` of the queries and of the keys, or `None`.
    """

    def __init__(
        self,
        layer: CachedKeys,
        query: Tensor,
        value: Tensor,
        key: Tensor | None,
        given: CallArguments,
    ) -> None:
        self.layer, self.given = layer, given
        self.encoding: PositionalEncoding = layer.encoding
        found = _find_keys(given.self_attention, query, value, key)
        self.is_self, self.query, value, self.key = found
        new = (value, self.key) if given.has_new_keys else ()
        _check_causal(
            layer, given.use_causal_mask or given.attention_mask is not None
        )
        _check_axes(layer, self.query, *new)
        # Each once: in self-attention all three must stay one tensor.
        self.tensors: dict[str, Any] = {"query": self.query}
        if new:
            if value is not self.query:
                self.tensors["value"] = value
            if not (self.key is self.query or self.key is value):
                self.tensors["key"] = self.key
            self.tensors = _guard_sizes(
                self.tensors, self.query, value, self.key
            )

    def read(self, axes: FoldedAxes | None) -> Inputs:
        """Reads everything.

        Args:
            axes: `FoldedAxes`, if the inputs had more than three axes.
        """
        given = self.given
        self._read_cache()
        self._read_masks()
        self._read_documents()
        length = self._read_length()
        positions, key_positions, new_positions = self._read_positions()
        self._check_positions(positions, key_positions)
        cache = given.cache
        context = make_context(
            self.layer,
            self.query,
            self.key if cache is None else cache["key"],
            positions=positions,
            key_positions=key_positions,
            new_positions=new_positions,
            key_mask=self.key_mask,
            attention_mask=self.attention_mask,
            causal=given.use_causal_mask,
            is_self=self.is_self,
            new=given.has_new_keys,
            length=length,
            index=self.index,
            axes=axes,
            documents=self.documents,
        )
        query, key, value = self.tensors["query"], None, None
        if given.has_new_keys:
            value = self.tensors.get("value", query)
            key = self.tensors.get("key", query if self.is_self else value)
        return Inputs(query, key, value, self.tensors["cache"], context)

    def _read_cache(self) -> None:
        """Reads the cache and the index of the first new key."""
        layer, given = self.layer, self.given
        if given.cache is not None and layer.has_rolling_cache:
            check_rolling_cache(layer, given)
        mask = given.key_mask if given.value_mask is None else given.value_mask
        self.whole = find_whole(
            *(layer, self.key, given.cache, given.cache_update_index),
            (mask, given.key_positions),
        )
        self.tensors, self.index = read_cache(
            *(layer, {**self.tensors, "cache": given.cache}),
            *(given.cache_update_index, self.key, mask, self.whole),
        )

    def _read_masks(self) -> None:
        """Reads the masks of padding and of pairs."""
        given, cache = self.given, self.given.cache
        self.query_mask = None
        if cache is None:
            # With a cache, Keras' mask of the queries covers the whole cache.
            self.query_mask = self._read_mask("query_mask", self.query)
        of_keys = [
            self._read_mask(name, self.whole)
            for name in ("value_mask", "key_mask")
        ]
        masks = [mask for mask in of_keys if mask is not None]
        self.key_mask = (
            functools.reduce(ops.logical_and, masks) if masks else None
        )
        known = self.is_self and (cache is None or self.whole is None)
        if given.use_causal_mask and not known:
            self.tensors = _guard_order_of_tokens(
                self.tensors, self.query, self.whole
            )
        if cache is not None and given.attention_mask is not None:
            _check_mixing(self.layer)
        self.attention_mask, self.tensors = _read_attention_mask(
            *(given.attention_mask, self.tensors, self.layer.num_heads),
            *(self.query, self.key if cache is None else cache["key"]),
        )

    def _read_mask(self, name: str, inputs: Tensor) -> Tensor | None:
        mask, self.tensors = read_mask(
            getattr(self.given, name), self.tensors, inputs=inputs, name=name
        )
        return mask

    def _read_documents(self) -> None:
        """Reads which documents the queries and the keys belong to."""
        given = self.given
        self.documents = None
        if given.segment_ids is None and given.key_segment_ids is None:
            return
        _check_packed(given, is_self=self.is_self)
        ids = self._read_segment_ids("segment_ids", self.query)
        if self.is_self:
            documents = find_documents(ids, self.key_mask)
            self.documents = documents, documents
            return
        key_ids = self._read_segment_ids("key_segment_ids", self.key)
        self.documents = (
            find_documents(ids, self.query_mask, numbered=False),
            find_documents(key_ids, self.key_mask, numbered=False),
        )

    def _read_segment_ids(self, name: str, inputs: Tensor) -> Tensor:
        ids, self.tensors = read_segment_ids(
            getattr(self.given, name), self.tensors, inputs=inputs, name=name
        )
        return ids

    def _read_length(self) -> Size | None:
        """Reads the length of the whole sequence, if the encoding needs it."""
        length = read_reference_length(
            self.given.length, self.query, name="length"
        )
        self.tensors = mark_like(self.tensors, length)
        if length is not None or not self.encoding.uses_length:
            return length
        return find_sequence_length(
            self.key_mask,
            None if self.given.cache is None else self.whole,
            None if self.documents is None else self.documents[1],
        )

    def _read_positions(
        self,
    ) -> tuple[Positions, Positions, Positions | None]:
        """Reads or samples positions of queries, all keys and new keys.

        Those of the new keys are `None` if there are none.
        """
        encoding, given, whole = self.encoding, self.given, self.whole
        positions, key_positions = given.positions, given.key_positions
        if positions is not None:
            positions = encoding.given_positions(positions, self.query)
        if key_positions is not None:
            key_positions = encoding.given_positions(
                key_positions, whole, name="key_positions"
            )
        if given.cache is None:
            return self._sample_positions(positions, key_positions)
        is_self = self.is_self and self.index is not None
        check_cached_positions(
            encoding, positions, key_positions, is_self=is_self
        )
        if key_positions is None:
            if whole is None:
                numbers = _number_new_tokens(encoding, self.index, self.key)
                return numbers, numbers, numbers
            key_positions = self._sample(whole, self.key_mask)
        new = find_new_positions(key_positions, self.index, self.key)
        if not is_self:
            if positions is None:
                positions = self._sample(self.query)
            return positions, key_positions, new
        positions = new if positions is None else positions
        return positions, key_positions, positions

    def _sample_positions(
        self, positions: Positions | None, key_positions: Positions | None
    ) -> tuple[Positions, Positions, Positions]:
        """Samples the positions that are not given, without a cache."""
        query_mask = self.query_mask
        if not self.is_self:
            check_drawn_apart(self.encoding, positions, key_positions)
        elif query_mask is None:
            query_mask = self.key_mask
        if positions is None:
            positions = self._sample(self.query, query_mask)
        if key_positions is None:
            key_positions = positions
            if not self.is_self:
                key_positions = self._sample(self.key, self.key_mask, 1)
        return positions, key_positions, key_positions

    def _sample(
        self, inputs: Tensor, mask: Tensor | None = None, side: int = 0
    ) -> Positions:
        """Samples positions of the queries, or of keys, which are `side` 1."""
        self.encoding.sampler.check_inputs(inputs)
        return place_tokens(
            self.encoding.sampler,
            inputs,
            mask=mask,
            documents=None if self.documents is None else self.documents[side],
            training=self.given.training,
        )

    def _check_positions(
        self, positions: Positions, key_positions: Positions
    ) -> None:
        """Marks the tensors of invalid positions, and checks their order."""
        given, encoding = self.given, self.encoding
        if encoding.stage is not None:
            self.tensors = mark_by_positions(self.tensors, positions)
            if key_positions is not positions:
                self.tensors = mark_by_positions(self.tensors, key_positions)
        new_tokens = self.is_self and given.has_new_keys
        if new_tokens and given.use_causal_mask and self.attention_mask is None:
            documents = self.documents
            self.tensors = guard_order(
                *(self.tensors, encoding, positions, key_positions),
                index=self.index,
                mask=self.key_mask,
                documents=None if documents is None else documents[1].ids,
            )


def _find_keys(
    self_attention: bool | None,
    query: Tensor,
    value: Tensor,
    key: Tensor | None,
) -> tuple[bool, Tensor, Tensor, Tensor]:
    """Finds out whether the keys are the queries' own tokens.

    Returns:
        Tuple of the answer, the query, the value and the key.
    """
    is_self = (value if key is None else key) is query
    if self_attention is not None:
        is_self = Boolean().check("self_attention", self_attention)
    if is_self and key is None:
        if value is not query:
            check_rank("query", query, (3,), "(B, T, M)")
            check_rank("value", value, (3,), "(B, T, M)")
            query = guard_same_size(query, 1, query=query, value=value)
        value = query
    key = query if is_self else (value if key is None else key)
    return is_self, query, value, key


def _check_axes(
    layer: CachedKeys,
    query: Tensor,
    value: Tensor | None = None,
    key: Tensor | None = None,
) -> None:
    """Checks axes and widths of query, value and key, as far as given."""
    names = {"query": query, "value": value, "key": key}
    for part, tensor in names.items():
        if tensor is None:
            continue
        # The caller's argument: without a key, the value is the key.
        name = next(each for each in names if names[each] is tensor)
        tokens = "T" if name == "query" else "S"
        check_rank(name, tensor, (3,), f"(B, {tokens}, M)")
        width, built = tensor.shape[-1], layer.input_widths[part]
        if width != built:
            raise ValueError(
                f"{name} has width {width}, but this "
                f"{type(layer).__name__} was built for {built}."
            )
        if tensor.shape[1] == 0 and query.shape[1] != 0:
            raise ValueError(
                f"{name} must have at least one token for the queries to "
                f"attend to; got shape {tuple(tensor.shape)}."
            )


def check_shapes(
    layer: CachedKeys, query: Tensor, value: Tensor, key: Tensor
) -> None:
    """Checks that query, value and key fit each other and the layer."""
    _check_axes(layer, query, value, key)
    _guard_sizes((), query, value, key)


def _guard_sizes(guarded: T, query: Tensor, value: Tensor, key: Tensor) -> T:
    """Guards tensors by the condition that the three are equally long."""
    guarded = guard_same_size(guarded, 0, query=query, value=value)
    if key is value:
        return guarded
    guarded = guard_same_size(guarded, 0, query=query, key=key)
    return guard_same_size(guarded, 1, key=key, value=value)


def _check_causal(layer: CachedKeys, masked: bool) -> None:
    """Raises `ValueError` if what works in causal attention gets no mask."""
    for part, kind in ((layer, "attention"), (layer.encoding, "encoding")):
        if part.causal_only and not masked:
            raise ValueError(
                f"{type(part).__name__} is for causal attention, where "
                "no query sees a later key: set use_causal_mask, or "
                f"choose another {kind}."
            )


def _check_mixing(layer: CachedKeys) -> None:
    """Raises `ValueError` if keys in a cache depend on masks of earlier calls.

    Args:
        layer: `MultiHeadAttention`, called with a cache and an attention mask.
    """
    for part in layer.make_rule(None).parts:
        if part.mixes:
            raise ValueError(
                f"{part.name} depend on the earlier tokens that a token sees, "
                "but with a cache, attention_mask does not tell what earlier "
                "tokens see: leave attention_mask out, or do without a cache."
            )


def _check_packed(given: CallArguments, *, is_self: bool) -> None:
    """Raises `ValueError` if a call cannot have packed rows.

    Args:
        given: `CallArguments` with `segment_ids` or `key_segment_ids`.
        is_self: bool, whether the keys are the queries' own tokens.
    """
    for name, value in (("a cache", given.cache), ("length", given.length)):
        if value is not None:
            raise ValueError(
                f"segment_ids and {name} exclude each other: a packed row is "
                f"not one sequence. Leave {name} out, or give each document a "
                "row of its own."
            )
    if is_self and given.key_segment_ids is not None:
        raise ValueError(
            "key_segment_ids are for keys of another sequence; in "
            "self-attention, segment_ids are also those of the keys: leave "
            "key_segment_ids out."
        )
    both = given.segment_ids is not None and given.key_segment_ids is not None
    if not (is_self or both):
        raise ValueError(
            "attention to another sequence needs both segment_ids, of the "
            "queries, and key_segment_ids, of the keys."
        )


def _number_new_tokens(
    encoding: PositionalEncoding, index: Size, key: Tensor
) -> Tensor:
    """Numbers new tokens of a sequence of unknown length by their indices."""
    if encoding.stage is not None:
        raise ValueError(
            "with sliding_window, the cache does not tell how many tokens the "
            f"whole sequence has, which {type(encoding).__name__} needs to "
            "place the tokens from a cache_update_index that is a tensor: pass "
            "`key_positions`, those of the whole sequence."
        )
    return index + ops.arange(ops.shape(key)[1], dtype="int32")


def check_drawn_apart(
    encoding: PositionalEncoding,
    positions: Positions | None,
    key_positions: Positions | None,
) -> None:
    """Raises `ValueError` if queries and keys would get separate draws."""
    drawn = encoding.stage is not None and encoding.sampler.is_random
    if drawn and (positions is None or key_positions is None):
        raise ValueError(
            f"{type(encoding.sampler).__name__} would draw the "
            "positions of queries and keys apart from each other. In "
            "self-attention, pass one tensor as query and value, computed "
            "once; otherwise pass `positions` and `key_positions`."
        )


def _guard_order_of_tokens(tensors: T, query: Tensor, key: Tensor) -> T:
    """Guards tensors by the condition that no query is before all keys."""
    tokens, keys = find_size(query, 1), find_size(key, 1)
    return guard(
        tensors,
        as_size(tokens) <= as_size(keys),
        "use_causal_mask needs at least as many keys as queries, because the "
        "queries are the last tokens; got ",
        format_size(tokens),
        " queries and ",
        format_size(keys),
        " keys: pass an attention_mask instead.",
    )


_MASK_AXES = ("examples", "heads", "queries", "keys")


def _read_attention_mask(
    mask: TensorLike | None,
    tensors: T,
    heads: int,
    query: Tensor,
    key: Tensor,
) -> tuple[Tensor | None, T]:
    """Reads an attention mask and adds its missing axes.

    Returns:
        Boolean tensor `(1 or B, 1 or H, T, S)`, or `None`; and the guarded
        tensors.
    """
    if mask is None:
        return None, tensors
    shape = "(T, S), (B, T, S) or (B, H, T, S)"
    mask, tensors = read_truth_values(
        "attention_mask", mask, (2, 3, 4), shape, tensors
    )
    if len(mask.shape) == 2:
        mask = ops.expand_dims(mask, 0)
    if len(mask.shape) == 3:
        mask = ops.expand_dims(mask, 1)
    sizes = (find_size(query, 0), heads, find_size(query, 1), find_size(key, 1))
    for axis, wanted in enumerate(sizes):
        size = find_size(mask, axis)
        if find_static_size(size) == 1:
            continue
        mask, tensors = guard(
            (mask, tensors),
            _is_one_or(size, wanted),
            f"attention_mask must have shape {shape}: got ",
            format_size(size),
            f" {_MASK_AXES[axis]}, wanted 1 or ",
            format_size(wanted),
            ".",
        )
    batch_size, mask_heads, _, keys = ops.shape(mask)
    mask = ops.broadcast_to(mask, (batch_size, mask_heads, sizes[2], keys))
    return mask, tensors


def _is_one_or(size: Size, wanted: Size) -> bool | Tensor:
    """Whether the size of an axis is one or the wanted size."""
    equal = compare_sizes(size, wanted)
    if equal is True or find_static_size(size) is not None:
        return equal
    return ops.logical_or(equal, as_size(size) == 1)


def find_output_spec(
    layer: CachedKeys,
    query: keras.KerasTensor,
    value: keras.KerasTensor,
    key: keras.KerasTensor | None,
    given: CallArguments,
) -> Any:
    """Checks symbolic inputs and finds the results of a call.

    Args:
        layer: `MultiHeadAttention`.
        query: Symbolic tensor `(B, T, M)`.
        value: Symbolic tensor `(B, S, M)`.
        key: Symbolic tensor `(B, S, M)`, or `None`.
        given: `CallArguments`.

    Returns:
        Symbolic tensors.
    """
    cache, encoding = given.cache, layer.encoding
    is_self = (value if key is None else key) is query
    is_self = is_self or bool(given.self_attention)
    axes = plan_axes(layer.attention_axes, query, value, key, given)
    shape = layer.compute_output_shape(
        query.shape, value.shape, None if key is None else key.shape
    )
    if axes is not None:
        query, value, key = axes.fold_specs(query, value, key)
    check_shapes(layer, query, value, value if key is None else key)
    if cache is None:
        check_own_tokens(layer, is_self=is_self, causal=given.use_causal_mask)
    if encoding.stage is not None and cache is None:
        if not is_self:
            check_drawn_apart(encoding, given.positions, given.key_positions)
        if given.positions is None:
            encoding.sampler.compute_output_spec(query)
    results = [keras.KerasTensor(shape, dtype=layer.compute_dtype)]
    if given.return_attention_scores:
        keys = value.shape[1] if cache is None else cache["key"].shape[1]
        shape = (query.shape[0], layer.num_heads, query.shape[1], keys)
        if axes is not None:
            shape = axes.list_weight_sizes(layer.num_heads)
        results.append(keras.KerasTensor(shape, dtype="float32"))
    if cache is not None:
        results.append(cache)
    return results[0] if len(results) == 1 else tuple(results)
