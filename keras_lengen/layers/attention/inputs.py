"""Reads the call arguments of attention and checks them once."""

import dataclasses
import functools
from typing import Any, TypeVar

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
    Cache,
    CachedKeys,
    check_cached_positions,
    check_ring,
    find_new_positions,
    find_sequence_length,
    find_whole,
    read_cache,
)
from keras_lengen.layers.attention.token_order import guard_order
from keras_lengen.layers.attention.visibility import (
    Visibility,
    find_visible,
)
from keras_lengen.layers.attention.windows import (
    Window,
    place_in_ring,
    place_tokens,
)
from keras_lengen.layers.documents import (
    Documents,
    find_documents,
    find_runs,
)
from keras_lengen.layers.encodings.base import (
    AttentionSpec,
    PositionalEncoding,
    number_by_index,
)
from keras_lengen.layers.real_tokens import rank_real_tokens
from keras_lengen.types import Positions, Shape, Size, Tensor, TensorLike

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, eq=False)
class Context:
    """Properties of the tokens in a call of attention, besides their features.

    It is checked, and all layers of a model share it.

    Attributes:
        positions: Positions of the queries, `(T,)` or `(B, T)`; a pair of
            these if the encoding takes pairs.
        key_positions: Positions of all keys, `(S,)` or `(B, S)`.
        new_positions: Positions of the keys that a call computes: of all keys
            if there is no cache, and `None` if it computes none.
        indices: Indices of the queries among the keys, int32 `(T,)`.
        visible: `Visibility` of all queries and keys.
        is_self: bool, whether the keys are the queries' own tokens.
        new: bool, whether a call computes keys and values.
        length: Length of the whole sequence for the encoding, or `None`.
        index: Index in the cache of the first new key, or `None`.
        chunk_size: int, number of queries in a chunk; `None`: no chunks.
        prepared: What the encoding has prepared, or `None`.
        window: `Window`, or `None` without a sliding window.
        axes: `FoldedAxes` if the inputs have more than three axes, or `None`.
        documents: `Documents` of the queries and of the keys, or `None` if
            rows are not packed.
    """

    positions: Positions
    key_positions: Positions
    new_positions: Positions | None
    indices: Tensor
    visible: Visibility
    is_self: bool = True
    new: bool = True
    length: Tensor | None = None
    index: Size | None = None
    chunk_size: int | None = None
    prepared: Any = None
    window: Window | None = None
    axes: FoldedAxes | None = None
    documents: tuple[Documents, Documents] | None = None

    @property
    def ranks(self) -> Tensor:
        """Ranks of the queries among the real tokens, below 0 for padding.

        int32 `(T,)` or `(B, T)`.
        """
        if self.documents is not None:
            return self.documents[0].ranks
        visible = self.visible
        if visible.reach.window is not None or visible.padding is None:
            return visible.queries
        ranks = rank_real_tokens(visible.padding)
        return ops.take(ranks, self.indices, axis=-1)

    @property
    def runs(self) -> Tensor | None:
        """Runs of keys, beyond which a token reads no earlier ones.

        int32 `(B, S)`, or `None` if each row is one run.
        """
        given, padding = self.visible.given, self.visible.padding
        if self.documents is not None:
            return self.documents[1].ids
        if given is None or not self.is_self:
            return None
        return find_runs(
            given, ops.shape(given if padding is None else padding)[0]
        )


def make_context(
    layer: CachedKeys,
    query: Tensor,
    slots: Tensor,
    *,
    key_positions: Positions,
    causal: bool = False,
    key_mask: Tensor | None = None,
    attention_mask: Tensor | None = None,
    documents: tuple[Documents, Documents] | None = None,
    **known: Any,
) -> Context:
    """Makes the context of attention from inputs that are checked.

    Args:
        layer: `MultiHeadAttention`.
        query: Tensor `(B, T, ...)`; only its shape is read.
        slots: Tensor `(B, S, ...)`, an entry for each key; only its shape is
            read.
        key_positions: Positions of the whole sequence of keys.
        causal: bool, whether queries attend to no later keys.
        key_mask: Boolean tensor `(B, S)`, true for real keys, or `None`.
        attention_mask: Boolean tensor `(1 or B, 1 or H, T, S)`, or `None`.
        documents: `Documents` of the queries and of the keys, or `None`.
        **known: `positions`, `new_positions`, `is_self`, `new`, `length`,
            `index` and `axes` of the `Context`.

    Returns:
        `Context`.
    """
    encoding, is_self = layer.encoding, known.get("is_self", True)
    _check_own_tokens(layer, is_self=is_self, causal=causal)
    if documents is not None:
        check_packable(encoding, is_self=is_self)
    tokens, keys = ops.shape(query)[1], ops.shape(slots)[1]
    index, positions = known.get("index"), known.pop("positions")
    first = keys - tokens if index is None else index
    indices = first + ops.arange(tokens, dtype="int32")
    window = ranks = None
    if layer.sliding_window is not None:
        window, key_positions, key_mask = _place_window(
            *(layer, indices, tokens, keys, key_positions, key_mask),
            documents=documents,
            index=index,
            new=known.get("new", True),
            alike=is_self and attention_mask is None,
        )
        ranks = window.ranks, window.key_ranks
    attended = _count_attended(query.shape[1], slots.shape[1], window)
    chunk_size = layer.find_chunk_size(
        query.shape[1], attended, sliced=window is not None and window.sliced
    )
    visible = find_visible(
        *(layer.find_reach(causal), indices, keys, ranks),
        padding=key_mask,
        given=attention_mask,
        documents=None
        if documents is None
        else (documents[0].ids, documents[1].ids),
    )
    if encoding.counts_tokens:
        positions, key_positions = number_by_index(
            positions, key_positions, indices, key_mask
        )
    spec = AttentionSpec(
        heads=layer.num_heads,
        width=layer.key_dim,
        dtype=layer.compute_dtype,
        batch_size=query.shape[0],
        length=known.get("length"),
        causal=causal and encoding.sampler.keeps_order,
    )
    prepared = None
    if encoding.stage == "rotation":
        new = known["new_positions"]
        new = positions if new is None else new
        prepared = encoding.prepare(positions, new, spec)
    elif encoding.stage == "bias" and chunk_size is None:
        prepared = encoding.prepare(positions, key_positions, spec)
    return Context(
        positions=positions,
        key_positions=key_positions,
        indices=indices,
        visible=visible.join() if chunk_size is None else visible,
        chunk_size=chunk_size,
        prepared=prepared,
        window=window,
        documents=documents,
        **known,
    )


def _place_window(
    layer: CachedKeys,
    indices: Tensor,
    tokens: Size,
    slots: Size,
    key_positions: Positions,
    key_mask: Tensor | None,
    *,
    documents: tuple[Documents, Documents] | None,
    index: Size | None,
    new: bool,
    alike: bool,
) -> tuple[Window, Positions | None, Tensor | None]:
    """Finds the tokens of a call with a sliding window.

    Args:
        layer: `MultiHeadAttention`.
        indices: Indices of the queries among the keys, int32 `(T,)`.
        tokens: Number of queries.
        slots: Number of keys, or of entries of the cache.
        key_positions: Positions of the whole sequence of keys.
        key_mask: Boolean tensor `(B, S)`, true for real keys, or `None`.
        documents: `Documents` of the queries and of the keys, or `None`.
        index: Index in the cache of the first new key, or `None`.
        new: bool, whether the call computes keys and values.
        alike: bool, whether all heads see the queries' own tokens only by
            their numbers.

    Returns:
        `Window`, and positions and mask of the keys to attend to.
    """
    keeps_ring = layer.keeps_ring
    if index is None or not keeps_ring:
        window = place_tokens(
            *(indices, slots, key_mask),
            sliced=alike and keeps_ring and new,
            documents=documents,
        )
        return window, key_positions, key_mask
    # Keys are rotated before they are cached.
    encoding = layer.encoding
    reads_positions = encoding.stage == "bias" or encoding.reads_key_positions
    window, positions = place_in_ring(
        *(index, tokens, slots, layer.sink_tokens, key_mask),
        key_positions if reads_positions else None,
    )
    sliced = alike and window.attends == "new"
    return window._replace(sliced=sliced), positions, None


def _count_attended(tokens: Any, slots: Any, window: Window | None) -> Any:
    """Counts the keys to attend to, as far as shapes say it."""
    if window is None or window.source is None or window.attends == "cache":
        return slots
    if window.attends == "new":
        return tokens
    return None if None in (tokens, slots) else tokens + slots


def read_inputs(
    layer: CachedKeys,
    query: Tensor,
    value: Tensor,
    key: Tensor | None,
    context: Context | None,
    training: bool | None,
    *,
    masks: tuple[TensorLike | None, ...],
    places: tuple[TensorLike | None, ...],
    segments: tuple[TensorLike | None, TensorLike | None],
    slots: tuple[Cache | None, Size | None],
    modes: tuple[bool, bool | None, bool],
) -> tuple[Tensor, Tensor | None, Tensor | None, Cache | None, Context]:
    """Reads the call arguments of `MultiHeadAttention`, which describes them.

    Args:
        layer: `MultiHeadAttention`.
        query: `(B, T, M)`, or a tensor with more axes.
        value: `(B, S, M)`, or a tensor with more axes.
        key: `(B, S, M)`, a tensor with more axes, or `None`.
        context: `Context` of a model that has checked its inputs, besides
            which only the cache is read; or `None`.
        training: bool or `None`.
        masks: Tuple of `query_mask`, `value_mask`, `key_mask` and
            `attention_mask`.
        places: Tuple of `positions`, `key_positions` and `length`.
        segments: Tuple of `segment_ids` and `key_segment_ids`.
        slots: Tuple of `cache` and `cache_update_index`.
        modes: Tuple of `use_causal_mask`, `self_attention` and
            `return_attention_scores`.

    Returns:
        Tuple of query, key and value, the cache, and the `Context`. Inputs that
        are found to be wrong only at run time make the query and the value
        invalid. Key and value are `None` if all keys are in the cache.

    Raises:
        ValueError: If an argument is wrong.
    """
    (cache, index), (causal, self_attention, return_weights) = slots, modes
    if context is not None:
        value = query if context.is_self else value
        key = value if context.new else None
        return query, key, value, cache, context
    Boolean().check("use_causal_mask", causal)
    further = {
        "cache": cache,
        "length": places[2],
        "segment_ids": segments[0],
        "key_segment_ids": segments[1],
    }
    axes = plan_axes(layer.attention_axes, query, value, key, further)
    if axes is not None:
        query, value, key, masks, places = fold_inputs(
            *(axes, query, value, key, masks, places, layer.num_heads)
        )
    is_self, query, value, key = _find_keys(self_attention, query, value, key)
    _check_causal(layer, causal or masks[-1] is not None)
    new = cache is None or index is not None
    tensors = _read_features(layer, query, *((value, key) if new else ()))
    if cache is not None and layer.keeps_ring:
        check_ring(layer, causal, index, masks[-1], return_weights)
    mask = masks[2] if masks[1] is None else masks[1]
    whole = find_whole(layer, key, cache, index, (mask, places[1]))
    tensors, index = read_cache(
        layer, {**tensors, "cache": cache}, index, key, mask, whole
    )
    keys = key if cache is None else cache["key"]
    query_mask, key_mask, tensors = _read_masks(tensors, whole, masks)
    if causal and not (is_self and (cache is None or whole is None)):
        tensors = _guard_order_of_tokens(tensors, query, whole)
    if cache is not None and masks[-1] is not None:
        _check_mixing(layer)
    attention_mask, tensors = _read_attention_mask(
        masks[-1], tensors, layer.num_heads, query, keys
    )
    documents, tensors = _read_documents(
        *(tensors, segments, query, key),
        is_self=is_self,
        masks=(query_mask, key_mask),
        refused={"a cache": cache, "length": places[2]},
    )
    length = read_reference_length(places[2], query, name="length")
    tensors = mark_like(tensors, length)
    if length is None and layer.encoding.uses_length:
        length = find_sequence_length(
            key_mask,
            None if cache is None else whole,
            None if documents is None else documents[1],
        )
    positions, key_positions, new_positions = _read_positions(
        *(layer.encoding, query, key, places[:2]),
        is_self=is_self,
        masks=(query_mask, key_mask),
        cached=None if cache is None else (whole, index),
        documents=documents,
        training=training,
    )
    if layer.encoding.stage is not None:
        tensors = mark_by_positions(tensors, positions)
        if key_positions is not positions:
            tensors = mark_by_positions(tensors, key_positions)
    if is_self and new and causal and attention_mask is None:
        tensors = guard_order(
            *(tensors, layer.encoding, positions, key_positions),
            index=index,
            mask=key_mask,
            documents=None if documents is None else documents[1].ids,
        )
    context = make_context(
        *(layer, query, keys),
        positions=positions,
        key_positions=key_positions,
        new_positions=new_positions,
        key_mask=key_mask,
        attention_mask=attention_mask,
        causal=causal,
        is_self=is_self,
        new=new,
        length=length,
        index=index,
        axes=axes,
        documents=documents,
    )
    query = tensors["query"]
    value = tensors.get("value", query) if new else None
    key = tensors.get("key", query if is_self else value) if new else None
    return query, key, value, tensors["cache"], context


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


def find_width(shape: Shape) -> int:
    """Returns the size of the last axis, or raises `ValueError` without one."""
    width = shape[-1]
    if width is None:
        raise ValueError(
            f"the last axis must have a known size; got shape {shape}: name "
            "the width of the features in keras.Input."
        )
    return width


def check_shapes(
    layer: CachedKeys, query: Tensor, value: Tensor, key: Tensor
) -> None:
    """Checks that query, value and key fit each other and the layer."""
    _check_axes(layer, query, value, key)
    _guard_sizes((), query, value, key)


def _read_features(
    layer: CachedKeys,
    query: Tensor,
    value: Tensor | None = None,
    key: Tensor | None = None,
) -> dict[str, Tensor]:
    """Checks query, value and key, as far as given.

    Returns:
        Dict of the guarded tensors, each once, because in self-attention all
        three must stay one tensor.
    """
    _check_axes(layer, query, value, key)
    tensors = {"query": query}
    if value is None:
        return tensors
    if value is not query:
        tensors["value"] = value
    if not (key is query or key is value):
        tensors["key"] = key
    return _guard_sizes(tensors, query, value, key)


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


def _check_own_tokens(
    layer: CachedKeys, *, is_self: bool, causal: bool
) -> None:
    """Raises `ValueError` if an encoding or a factor needs self-attention."""
    encoding = layer.encoding
    if encoding.reads_inputs and not is_self:
        raise ValueError(
            f"{type(encoding).__name__} rotates by the tokens between a query "
            "and a key, so that keys must be the queries' own tokens: pass one "
            "tensor as query and value, or choose another encoding."
        )
    # With a causal mask, queries are the last of the keys' tokens.
    if layer.score_factor == "adaptive" and not (is_self or causal):
        raise ValueError(
            'score_factor="adaptive" depends on the index of a query among the '
            "keys, so that keys must be the queries' own tokens: pass one "
            "tensor as query and value, or choose another score_factor."
        )


def _read_masks(
    tensors: dict[str, Any],
    keys: Tensor,
    masks: tuple[TensorLike | None, ...],
) -> tuple[Tensor | None, Tensor | None, dict[str, Any]]:
    """Reads the masks of padding among the queries and among the keys."""
    query_mask, value_mask, key_mask, _ = masks
    if tensors["cache"] is None:
        # With a cache, Keras' mask of the queries covers the whole cache.
        query_mask, tensors = read_mask(
            query_mask, tensors, inputs=tensors["query"], name="query_mask"
        )
    of_keys: list[Tensor] = []
    for name, mask in (("value_mask", value_mask), ("key_mask", key_mask)):
        mask, tensors = read_mask(mask, tensors, inputs=keys, name=name)
        if mask is not None:
            of_keys.append(mask)
    joined = functools.reduce(ops.logical_and, of_keys) if of_keys else None
    return query_mask, joined, tensors


def _read_documents(
    tensors: dict[str, Any],
    segments: tuple[TensorLike | None, TensorLike | None],
    query: Tensor,
    key: Tensor,
    *,
    is_self: bool,
    masks: tuple[Tensor | None, Tensor | None],
    refused: dict[str, Any],
) -> tuple[tuple[Documents, Documents] | None, dict[str, Any]]:
    """Reads which documents the queries and the keys belong to.

    Returns:
        Pair of the documents, or `None`, and the guarded tensors.
    """
    ids, key_ids = segments
    if ids is None and key_ids is None:
        return None, tensors
    for name, value in refused.items():
        if value is not None:
            raise ValueError(
                f"segment_ids and {name} exclude each other: a packed row is "
                f"not one sequence. Leave {name} out, or give each document a "
                "row of its own."
            )
    if is_self and key_ids is not None:
        raise ValueError(
            "key_segment_ids are for keys of another sequence; in "
            "self-attention, segment_ids are also those of the keys: leave "
            "key_segment_ids out."
        )
    if not is_self and (ids is None or key_ids is None):
        raise ValueError(
            "attention to another sequence needs both segment_ids, of the "
            "queries, and key_segment_ids, of the keys."
        )
    ids, tensors = read_segment_ids(ids, tensors, inputs=query)
    if is_self:
        documents = find_documents(ids, masks[1])
        return (documents, documents), tensors
    key_ids, tensors = read_segment_ids(
        key_ids, tensors, inputs=key, name="key_segment_ids"
    )
    return (
        find_documents(ids, masks[0], numbered=False),
        find_documents(key_ids, masks[1], numbered=False),
    ), tensors


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


def check_packable(encoding: PositionalEncoding, *, is_self: bool) -> None:
    """Raises `ValueError` if an encoding cannot tell packed documents apart.

    Args:
        encoding: `PositionalEncoding`.
        is_self: bool, whether the keys are the queries' own tokens.
    """
    name = type(encoding).__name__
    if encoding.reads_ranks:
        raise ValueError(
            f"{name} samples distances by the rank of a token among all keys "
            "of a row, of which segment_ids make several documents: set "
            'distances="positions", or give each document a row of its own.'
        )
    if encoding.uses_length and not is_self:
        raise ValueError(
            f"{name} depends on the length of one sequence, but with "
            "segment_ids, attention to another sequence has those of two: "
            "choose another encoding, or give each document a row of its own."
        )


def _read_positions(
    encoding: PositionalEncoding,
    query: Tensor,
    key: Tensor,
    given: tuple[TensorLike | None, ...],
    *,
    is_self: bool,
    masks: tuple[Tensor | None, Tensor | None],
    cached: tuple[Tensor | None, Size | None] | None,
    documents: tuple[Documents, Documents] | None,
    training: bool | None,
) -> tuple[Positions, Positions, Positions | None]:
    """Reads or samples positions of the queries, all keys and the new keys.

    `cached` is `None` without a cache, or the pair of a tensor with an entry
    for each token of the whole sequence and the index of the first new token.
    The positions of the new keys are `None` if there are none.
    """
    whole, index = (key, None) if cached is None else cached

    def sample(
        inputs: Tensor, mask: Tensor | None = None, side: int = 0
    ) -> Positions:
        encoding.sampler.check_inputs(inputs)
        return encoding.find_positions(
            inputs,
            mask=mask,
            documents=None if documents is None else documents[side],
            training=training,
        )

    positions, key_positions = given
    if positions is not None:
        positions = encoding.given_positions(positions, query)
    if key_positions is not None:
        key_positions = encoding.given_positions(
            key_positions,
            whole,
            name="key_positions",
        )
    query_mask, key_mask = masks
    if cached is None:
        if not is_self:
            check_drawn_apart(encoding, positions, key_positions)
        if is_self and query_mask is None:
            query_mask = key_mask
        if positions is None:
            positions = sample(query, query_mask)
        if key_positions is None:
            key_positions = positions if is_self else sample(key, key_mask, 1)
        return positions, key_positions, key_positions
    is_self = is_self and index is not None
    check_cached_positions(encoding, positions, key_positions, is_self=is_self)
    if key_positions is None:
        if whole is None:
            numbers = _number_new_tokens(encoding, index, key)
            return numbers, numbers, numbers
        key_positions = sample(whole, key_mask)
    new_positions = find_new_positions(key_positions, index, key)
    if not is_self:
        positions = sample(query) if positions is None else positions
        return positions, key_positions, new_positions
    positions = new_positions if positions is None else positions
    return positions, key_positions, positions


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
    drawn = encoding.stage is not None and encoding.sampler.draws
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
    *,
    is_self: bool,
    options: dict[str, Any],
) -> Any:
    """Checks symbolic inputs and finds the results of a call.

    Args:
        layer: `MultiHeadAttention`.
        query: Symbolic tensor `(B, T, M)`.
        value: Symbolic tensor `(B, S, M)`.
        key: Symbolic tensor `(B, S, M)`, or `None`.
        is_self: bool, whether the keys are the queries' own tokens.
        options: Dict of the other call arguments.

    Returns:
        Symbolic tensors.
    """
    cache, encoding = options.get("cache"), layer.encoding
    further = {
        name: options.get(name)
        for name in ("cache", "length", "segment_ids", "key_segment_ids")
    }
    axes = plan_axes(layer.attention_axes, query, value, key, further)
    shape = layer.compute_output_shape(
        *(query.shape, value.shape, None if key is None else key.shape)
    )
    if axes is not None:
        query, value, key = axes.fold_specs(query, value, key)
    check_shapes(layer, query, value, value if key is None else key)
    if cache is None:
        own = is_self or bool(options.get("self_attention"))
        causal = bool(options.get("use_causal_mask"))
        _check_own_tokens(layer, is_self=own, causal=causal)
    if encoding.stage is not None and cache is None:
        positions, key_positions = (
            options.get(name) for name in ("positions", "key_positions")
        )
        if not (is_self or options.get("self_attention")):
            check_drawn_apart(encoding, positions, key_positions)
        if positions is None:
            encoding.sampler.compute_output_spec(query)
    results = [keras.KerasTensor(shape, dtype=layer.compute_dtype)]
    if options.get("return_attention_scores"):
        keys = value.shape[1] if cache is None else cache["key"].shape[1]
        shape = (query.shape[0], layer.num_heads, query.shape[1], keys)
        if axes is not None:
            shape = axes.list_weight_sizes(layer.num_heads)
        results.append(keras.KerasTensor(shape, dtype="float32"))
    if cache is not None:
        results.append(cache)
    return results[0] if len(results) == 1 else tuple(results)
