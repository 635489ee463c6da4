"""What a call of attention knows of its tokens, besides their features."""

import dataclasses
from typing import Any

from keras import ops

from keras_lengen.layers.attention.axes import FoldedAxes
from keras_lengen.layers.attention.cache import CachedKeys
from keras_lengen.layers.attention.visibility import Visibility, find_visible
from keras_lengen.layers.attention.windows import (
    Window,
    place_in_rolling_cache,
    place_tokens,
)
from keras_lengen.layers.documents import Documents, find_runs
from keras_lengen.layers.encodings.base import (
    AttentionSpec,
    PositionalEncoding,
    number_by_index,
)
from keras_lengen.layers.real_tokens import rank_real_tokens
from keras_lengen.types import Positions, Size, Tensor


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
    positions: Positions,
    key_positions: Positions,
    new_positions: Positions | None,
    causal: bool = False,
    key_mask: Tensor | None = None,
    attention_mask: Tensor | None = None,
    documents: tuple[Documents, Documents] | None = None,
    is_self: bool = True,
    new: bool = True,
    length: Size | None = None,
    index: Size | None = None,
    axes: FoldedAxes | None = None,
) -> Context:
    """Makes the context of attention from inputs that are checked.

    Args:
        layer: `MultiHeadAttention`.
        query: Tensor `(B, T, ...)`; only its shape is read.
        slots: Tensor `(B, S, ...)`, an entry for each key; only its shape is
            read.
        positions: Positions of the queries.
        key_positions: Positions of the whole sequence of keys.
        new_positions: Positions of the keys that the call computes.
        causal: bool, whether queries attend to no later keys.
        key_mask: Boolean tensor `(B, S)`, true for real keys, or `None`.
        attention_mask: Boolean tensor `(1 or B, 1 or H, T, S)`, or `None`.
        documents: `Documents` of the queries and of the keys, or `None`.
        is_self: bool, as in `Context`.
        new: bool, as in `Context`.
        length: As in `Context`.
        index: As in `Context`.
        axes: As in `Context`.

    Returns:
        `Context`.
    """
    encoding = layer.encoding
    check_own_tokens(layer, is_self=is_self, causal=causal)
    _check_packable(encoding, documents, is_self=is_self)
    tokens, keys = ops.shape(query)[1], ops.shape(slots)[1]
    first = keys - tokens if index is None else index
    indices = first + ops.arange(tokens, dtype="int32")
    window, key_positions, key_mask = _place_window(
        *(layer, indices, tokens, keys, key_positions, key_mask),
        documents=documents,
        index=index,
        new=new,
        alike=is_self and attention_mask is None,
    )
    chunk_size = _choose_chunk_size(layer, query, slots, window)
    visible = find_visible(
        *(layer.find_reach(causal), indices, keys),
        ranks=window and (window.ranks, window.key_ranks),
        padding=key_mask,
        given=attention_mask,
        documents=documents and (documents[0].ids, documents[1].ids),
    )
    if encoding.uses_token_index:
        positions, key_positions = number_by_index(
            positions, key_positions, indices, key_mask
        )
    context = Context(
        positions=positions,
        key_positions=key_positions,
        new_positions=new_positions,
        indices=indices,
        visible=visible.join() if chunk_size is None else visible,
        is_self=is_self,
        new=new,
        length=length,
        index=index,
        chunk_size=chunk_size,
        window=window,
        axes=axes,
        documents=documents,
    )
    prepared = _prepare(layer, context, query.shape[0])
    return dataclasses.replace(context, prepared=prepared)


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
) -> tuple[Window | None, Positions | None, Tensor | None]:
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
        `Window`, or `None` if there is none; and positions and mask of the
        keys to attend to.
    """
    if layer.sliding_window is None:
        return None, key_positions, key_mask
    has_rolling_cache = layer.has_rolling_cache
    if index is None or not has_rolling_cache:
        window = place_tokens(
            *(indices, slots, key_mask),
            sliced=alike and has_rolling_cache and new,
            documents=documents,
        )
        return window, key_positions, key_mask
    # Keys are rotated before they are cached.
    encoding = layer.encoding
    reads_positions = encoding.stage == "bias" or encoding.reads_key_positions
    window, positions = place_in_rolling_cache(
        *(index, tokens, slots, layer.find_reach(True), key_mask),
        key_positions if reads_positions else None,
    )
    sliced = alike and window.attends == "new"
    return window._replace(sliced=sliced), positions, None


def _choose_chunk_size(
    layer: CachedKeys, query: Tensor, slots: Tensor, window: Window | None
) -> int | None:
    """Chooses the number of queries in a chunk, `None` for no chunks."""
    tokens, keys = query.shape[1], slots.shape[1]
    attended: Any = keys
    if window is not None and window.source is not None:
        if window.attends == "new":
            attended = tokens
        elif window.attends == "both":
            attended = None if None in (tokens, keys) else tokens + keys
    sliced = window is not None and window.sliced
    return layer.find_chunk_size(tokens, attended, sliced=sliced)


def _prepare(
    layer: CachedKeys, context: Context, batch_size: int | None
) -> Any:
    """Computes what the encoding needs of positions, once for all layers.

    In chunks, biases prepare for each chunk.
    """
    encoding, positions = layer.encoding, context.positions
    spec = AttentionSpec(
        heads=layer.num_heads,
        width=layer.key_dim,
        dtype=layer.compute_dtype,
        batch_size=batch_size,
        length=context.length,
        causal=context.visible.reach.causal and encoding.sampler.is_increasing,
    )
    if encoding.stage == "rotation":
        new = context.new_positions
        new = positions if new is None else new
        return encoding.prepare(positions, new, spec)
    if encoding.stage == "bias" and context.chunk_size is None:
        return encoding.prepare(positions, context.key_positions, spec)
    return None


def check_own_tokens(layer: CachedKeys, *, is_self: bool, causal: bool) -> None:
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


def _check_packable(
    encoding: PositionalEncoding,
    documents: tuple[Documents, Documents] | None,
    *,
    is_self: bool,
) -> None:
    """Raises `ValueError` if an encoding cannot tell packed documents apart.

    Args:
        encoding: `PositionalEncoding`.
        documents: `Documents` of the queries and of the keys, or `None`.
        is_self: bool, whether the keys are the queries' own tokens.
    """
    if documents is None:
        return
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
