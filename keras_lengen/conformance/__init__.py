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

    An encoding can be made again from its configuration. Its stage keeps shapes
    and dtypes, treats examples and queries independently, returns the same
    result with and without `prepare`, and is defined at fractional, negative
    and shifted positions as its attributes state. A model with the encoding
    computes the same result when it is compiled and after it is saved, and
    distinguishes positions 1000 and 1001 in half precision. A sampler can be
    made again from its configuration, returns the right shapes and dtypes, and
    keeps the positions of real tokens in padded sequences.

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
