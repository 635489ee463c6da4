"""Checks of properties that every encoding, sampler and model must have."""

from keras_lengen.checks.arguments import described
from keras_lengen.conformance import encodings, models, samplers
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.models.base import TokenModel

KINDS = {
    PositionalEncoding: encodings.checks_of,
    PositionSampler: samplers.checks_of,
    TokenModel: models.checks_of,
}


def check_conformance(
    layer: PositionalEncoding | PositionSampler | TokenModel,
) -> None:
    """Checks the properties that an encoding, a sampler or a model must have.

    An encoding can be made again from its configuration. Its stage keeps shapes
    and dtypes, treats examples and queries independently, returns the same
    result with and without `prepare`, and is defined at fractional, negative
    and shifted positions as its attributes state. A model with the encoding
    computes the same result when it is compiled and after it is saved, and
    distinguishes positions 1000 and 1001 in half precision. A sampler can be
    made again from its configuration, returns the right shapes and dtypes, and
    keeps the positions of real tokens in padded sequences.

    A model can be made again from its configuration. Padding, compilation and
    saving change no outputs. Positions are those of the samplers or those of
    the inputs, and 1000 and 1001 differ in half precision. In a decoder, later
    tokens change no earlier outputs, and generation computes what a call
    computes. A training step moves every weight, and sequences longer than the
    range of positions raise.

    Args:
        layer: `PositionalEncoding`, `PositionSampler`, or a model of this
            library or derived from one, that takes integer positions from 0 to
            1001, or sequences of 8 tokens.

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
        "layer must be a PositionalEncoding, a PositionSampler or a model; got "
        f"{described(layer)}."
    )
