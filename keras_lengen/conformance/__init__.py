"""Checks of what encodings, samplers and attentions must do."""

from keras_lengen.checks.arguments import described
from keras_lengen.conformance import attentions, encodings, samplers
from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.positions.base import PositionSampler

KINDS = {
    PositionalEncoding: encodings.checks_of,
    PositionSampler: samplers.checks_of,
    MultiHeadAttention: attentions.checks_of,
}


def check_conformance(
    layer: PositionalEncoding | PositionSampler | MultiHeadAttention,
) -> None:
    """Checks the properties that an encoding, sampler or attention must have.

    Both can be made again from their configuration, and keep every declared
    argument as it was given. Their class attributes say what they do.

    An encoding encodes a token whatever tokens follow, in which batch it is
    and whether it is the only query, as decoding needs it. It gives the same
    with and without `prepare`, in half precision, in functional, saved and
    compiled models, and has finite gradients.

    A sampler gives the positions of the right shape and dtype, in the same
    order for the same seed, from nothing but the shape of its inputs; and the
    same to padded sequences and in compiled programs.

    An attention can be made again from its configuration, hides later tokens
    if there is a causal mask, and ignores padding. It computes the same result
    one token at a time with a cache, in chunks of queries, when it is compiled,
    and after it is saved.

    Args:
        layer: `PositionalEncoding` or `PositionSampler` that takes integer
            positions from 0 to 1001, or sequences of 6 tokens; or a subclass
            of `MultiHeadAttention`.

    Raises:
        ValueError: If the layer is none of these.
        AssertionError: If a property is violated; the message describes it.

    Example:

    >>> from keras_lengen.conformance import check_conformance
    >>> from keras_lengen.layers import RoPE, ShiftedPositions
    >>> check_conformance(RoPE(sampler=ShiftedPositions(max_shift=9)))
    """
    for kind, checks_of in KINDS.items():
        if isinstance(layer, kind):
            for check in checks_of(layer):
                check(layer)
            return
    raise ValueError(
        "layer must be a PositionalEncoding, a PositionSampler or a "
        f"MultiHeadAttention; got {described(layer)}."
    )
