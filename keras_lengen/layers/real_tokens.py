"""Order, ranks and positions of the real tokens of padded sequences."""

from keras import ops

from keras_lengen.types import Tensor


def rank_real_tokens(mask: Tensor) -> Tensor:
    """Counts the real tokens up to each token, less one.

    Args:
        mask: Boolean tensor `(B, T)`, true for real tokens.

    Returns:
        int32 `(B, T)`. Padding has the rank of the last real token before it,
        -1 if there is none.
    """
    return ops.cumsum(ops.cast(mask, "int32"), axis=-1) - 1


def order_real_tokens(mask: Tensor) -> Tensor:
    """Lists the indices of the real tokens, then those of padding.

    Args:
        mask: Boolean tensor `(B, T)`, true for real tokens.

    Returns:
        int32 `(B, T)`.
    """
    tokens = ops.shape(mask)[1]
    indices = ops.arange(tokens, dtype="int32")
    order = ops.where(mask, indices, indices + tokens)
    return ops.cast(ops.argsort(order, axis=-1), "int32")


def number_real_tokens(positions: Tensor, mask: Tensor) -> Tensor:
    """Assigns the first positions, in order, to the real tokens of `mask`.

    Args:
        positions: Tensor `(T,)` or `(B, T)`.
        mask: Boolean tensor `(B, T)`, true for real tokens.

    Returns:
        Positions `(B, T)`. All padding tokens get the last position.
    """
    # The last position, because it changes the rank of no other position.
    last = ops.shape(mask)[-1] - 1
    indices = ops.where(mask, rank_real_tokens(mask), last)
    if len(positions.shape) == 1:
        return ops.take(positions, indices)
    return ops.take_along_axis(positions, indices, axis=-1)
