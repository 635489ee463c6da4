"""Checks of the properties that every encoding and sampler must have."""

from keras_lengen.checks.arguments import described
from keras_lengen.conformance import encodings, samplers
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.positions.base import PositionSampler

KINDS = {
    PositionalEncoding: encodings.checks_of,
    PositionSampler: samplers.checks_of,
}


def check_conformance(layer: PositionalEncoding | PositionSampler) -> None:
    """Checks the properties that an encoding or a sampler must have.

    Both can be made again from their configuration, and keep every declared
    argument as it was given. Their class attributes say what they do.

    An encoding encodes a token whatever tokens follow, in which batch it is
    and whether it is the only query, as decoding needs it. It gives the same
    with and without `prepare`, in half precision, in functional, saved and
    compiled models, and has finite gradients.

    A sampler gives the positions of the right shape and dtype, in the same
    order for the same seed, from nothing but the shape of its inputs; and the
    same to padded sequences and in compiled programs.

    Args:
        layer: `PositionalEncoding` or `PositionSampler` that takes integer
            positions from 0 to 1001, or sequences of 6 tokens.

    Raises:
        ValueError: If the layer is neither.
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
        "layer must be a PositionalEncoding or a PositionSampler; got "
        f"{described(layer)}."
    )
