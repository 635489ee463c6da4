"""Checks of what encodings, samplers, attentions and models must do."""

from keras_lengen.checks.arguments import described
from keras_lengen.conformance import attentions, encodings, models, samplers
from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.models.base import TokenModel

KINDS = {
    PositionalEncoding: encodings.checks_of,
    PositionSampler: samplers.checks_of,
    MultiHeadAttention: attentions.checks_of,
    TokenModel: models.checks_of,
}


def check_conformance(
    layer: PositionalEncoding
    | PositionSampler
    | MultiHeadAttention
    | TokenModel,
) -> None:
    """Checks the properties that a layer or model of its kind must have.

    All can be made again from their configuration, and keep every declared
    argument as it was given. Class attributes say what encodings and samplers
    do.

    An encoding encodes a token in the same way whatever tokens follow, in
    which batch it is and whether it is the only query, as decoding needs it. It
    gives the same with and without `prepare`, in half precision, in functional,
    saved and compiled models, and has finite gradients.

    A sampler gives positions of the right shape and dtype, in the same order
    for the same seed, from nothing but the shape of its inputs; and the same to
    padded sequences and in compiled programs.

    An attention hides later tokens if there is a causal mask, and ignores
    padding. It computes the same result one token at a time with a cache, in
    chunks of queries, when it is compiled, and after it is saved.

    In a model, padding, compilation and saving change no outputs. Positions are
    those of the samplers or those of the inputs, and 1000 and 1001 differ in
    half precision. In a decoder, later tokens change no earlier outputs, and
    generation computes what a call computes. A training step moves every
    weight, and sequences longer than the range of positions raise.

    Args:
        layer: `PositionalEncoding` or `PositionSampler`; a subclass of
            `MultiHeadAttention`; or a model of this library or derived from
            one. It takes integer positions from 0 to 1001, or sequences of 8
            tokens.

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
        "layer must be a PositionalEncoding, a PositionSampler, a "
        f"MultiHeadAttention or a model; got {described(layer)}."
    )
