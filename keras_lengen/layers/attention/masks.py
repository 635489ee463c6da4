"""Masks of attention."""

import functools

from keras import ops

from keras_lengen.layers.documents import compare_documents
from keras_lengen.types import Size, Tensor


def join_masks(
    attention_mask: Tensor | None,
    key_mask: Tensor | None,
    indices: Tensor | None,
    keys: Size,
    shown: Tensor | None = None,
    documents: tuple[Tensor, Tensor] | None = None,
) -> Tensor | None:
    """Combines all masks.

    Args:
        attention_mask: Boolean tensor `(1 or B, 1 or H, T, S)`, or `None`.
        key_mask: Boolean tensor `(B, S)`, true for real keys, or `None`.
        indices: Indices of the queries among the keys, int32 `(T,)`, if
            queries attend to no later keys; else `None`.
        keys: Number of keys `S`.
        shown: Boolean tensor `(T, S)` or `(B, 1, T, S)`, the keys in a sliding
            window, or `None`.
        documents: Documents of the queries, int32 `(B, T)`, and of the keys,
            `(B, S)`; or `None`.

    Returns:
        Boolean tensor that broadcasts to `(B, H, T, S)`, true where a query
        may attend to a key; `None` if there is no mask.
    """
    masks = [] if attention_mask is None else [attention_mask]
    if key_mask is not None:
        # Not [:, None, None]: TensorFlow Lite adds one axis at a time.
        masks.append(ops.expand_dims(key_mask, (1, 2)))
    if shown is not None:
        masks.append(shown)
    if documents is not None:
        masks.append(compare_documents(*documents))
    if indices is not None:
        masks.append(
            ops.arange(keys, dtype="int32") <= ops.expand_dims(indices, -1)
        )
    return functools.reduce(ops.logical_and, masks) if masks else None


def log_visible(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Computes the logarithm of the number of keys that queries may see.

    Args:
        scores: float32 `(B, H, T, S)`.
        mask: Boolean tensor that broadcasts to the scores, or `None`.

    Returns:
        float32 that broadcasts to `(B, H, T, 1)`.
    """
    if mask is None:
        return ops.log(ops.cast(ops.shape(scores)[-1], "float32"))
    count = ops.sum(ops.cast(mask, "float32"), axis=-1, keepdims=True)
    # A query without keys has no weights to scale.
    return ops.log(ops.maximum(count, 1.0))


def log_counts(
    indices: Tensor,
    keys: int,
    key_mask: Tensor | None,
    ranks: Tensor | None,
    *,
    size: int | None,
    sink_tokens: int,
    causal: bool,
) -> Tensor:
    """Does the same from indices and ranks, without a tensor of all pairs.

    Args:
        indices: Indices of the queries among the keys, int32 `(T,)`.
        keys: Number of keys `S`.
        key_mask: Boolean tensor `(B, S)`, true for real keys, or `None`.
        ranks: Ranks of the queries, int32 `(T,)` or `(B, T)`, if there is a
            sliding window.
        size: int, number of keys in the window, or `None`.
        sink_tokens: int, number of first tokens that all queries see.
        causal: bool, whether queries see no later keys.

    Returns:
        float32 `(T,)`, or `(B, T)` if there is a mask.
    """
    real = keys * ops.ones_like(indices)
    earlier = indices + 1
    if key_mask is not None:
        counts = ops.cumsum(ops.cast(key_mask, "int32"), axis=-1)
        earlier = ops.take(counts, indices, axis=-1)
        real = counts[:, -1:] + ops.zeros_like(earlier)
    if size is None or ranks is None:
        count = earlier if causal else real
    elif causal:
        count = ops.minimum(ranks + 1, size)
        count = count + ops.clip(ranks + 1 - size, 0, sink_tokens)
    else:
        first = ops.maximum(ranks - size + 1, 0)
        last = ops.minimum(ranks + size - 1, real - 1)
        twice = ops.minimum(last, sink_tokens - 1) - first + 1
        count = last - first + 1 + ops.minimum(sink_tokens, real)
        count = count - ops.maximum(twice, 0)
    return ops.log(ops.maximum(ops.cast(count, "float32"), 1.0))
