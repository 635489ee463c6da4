"""Check that positions keep the order of the tokens."""

from keras import ops

from keras_lengen.layers.encodings.base import expand_positions
from keras_lengen.layers.side_inputs import both, demand, find_static_size


def check_order(positions, key_positions, first, mask, *, name):
    """Checks that no token has a larger position than a later token.

    Args:
        positions: Positions of the queries, a tensor `(T,)` or `(B, T)`.
        key_positions: Positions of the keys, a tensor `(S,)` or `(B, S)`, of
            which the queries are a part.
        first: int or scalar integer tensor, index of the first query among
            the keys. The order of the keys before it is not checked.
        mask: Boolean tensor `(B, S)`, true for real keys, or `None`.
        name: str, name of the encoding, for the error message.

    Returns:
        `True`, or a boolean tensor `()` or `(B,)` if positions are known only
        at run time.
    """
    message = (
        "positions must not fall from token to token in causal attention with "
        f"{name}, which takes keys at larger positions for later tokens: give "
        "it the sampler of the positions, or choose an encoding such as "
        "ClippedBias or RoPE."
    )
    numbers = expand_positions(positions, 0)
    holds, real = True, None
    tokens = find_static_size(ops.shape(numbers)[-1])
    alone = isinstance(first, int) and first == 0
    if mask is not None:
        real = mask
        if not (alone and mask.shape[-1] == tokens):
            indices = first + ops.arange(ops.shape(numbers)[-1], dtype="int32")
            real = ops.take(mask, indices, axis=-1)
    if tokens != 1:
        holds = demand(_keep_order(numbers, real), message)
    if alone:
        return holds
    keys = expand_positions(key_positions, 0)
    earlier = ops.arange(ops.shape(keys)[-1], dtype="int32") < first
    if mask is not None:
        earlier = ops.logical_and(earlier, mask)
        numbers = ops.where(real, numbers, float("inf"))
    last = ops.max(ops.where(earlier, keys, -float("inf")), axis=-1)
    # The comparison is false for NaN, a position invalid for another reason.
    return both(
        holds,
        demand(
            ops.logical_not(last > ops.min(numbers, axis=-1)),
            message,
        ),
    )


def _keep_order(numbers, real):
    """Whether numbers `(T,)` or `(B, T)` do not fall, without padding."""
    if real is None:
        falls = numbers[..., 1:] < numbers[..., :-1]
    else:
        # In order, the n-th real number is the n-th smallest one.
        numbers = ops.where(real, numbers, float("inf"))
        ranks = ops.cumsum(ops.cast(real, "int32"), axis=-1) - 1
        ordered = ops.take_along_axis(
            ops.sort(numbers, axis=-1), ops.maximum(ranks, 0), axis=-1
        )
        falls = ops.logical_and(real, ordered != numbers)
        # NaN is invalid for another reason.
        falls = ops.logical_and(falls, ordered == ordered)
        falls = ops.logical_and(falls, numbers == numbers)
    return ops.logical_not(ops.any(falls, axis=-1))
