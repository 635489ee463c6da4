"""Masks of attention."""

import functools

from keras import ops

from keras_lengen.types import Size, Tensor


def join_masks(
    attention_mask: Tensor | None,
    key_mask: Tensor | None,
    indices: Tensor | None,
    keys: Size,
    shown: Tensor | None = None,
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
