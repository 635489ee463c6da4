"""The contract of position samplers."""

import keras
from keras import ops

from keras_lengen.arguments import check_instance
from keras_lengen.layers.drawing import DrawingLayer
from keras_lengen.layers.side_inputs import (
    NamedInputs,
    check_lengths,
    check_reference_length,
    where_holds,
)


class PositionSampler(NamedInputs, DrawingLayer):
    """Answers where each token of a sequence stands.

    A sampler reads the shape of its inputs and returns one number per token.
    Any sampler feeds any encoding. Subclasses implement `sample`, which gets
    what `call` has checked.

    Call arguments:
        inputs: Tensor of shape `(B, T, ...)` and any dtype; only its shape is
            read.
        lengths: True lengths inside the padded `T`, integers from 0 to `T`,
            shape `(B,)` or a scalar. Positions are drawn for the true length:
            those of padding are finite and meaningless.
        reference_length: The length that an interpolating sampler scales by,
            where that is not the number of tokens; above 0, shape `(B,)` or a
            scalar.
        training: Whether the call belongs to training.

    Returns:
        int32 or float32 positions of shape `(T,)` where the whole batch shares
        one draw and one length, `(B, T)` otherwise.

    Raises:
        ValueError: If `inputs` have fewer than two axes, or lengths are out of
            range or not those of the batch. Where only a run of a compiled
            program knows, it ends with an assertion; under XLA positions are
            invalid then, and every encoding makes NaN of them.
    """

    draws = False
    """Whether two calls may return different positions."""

    stretches = False
    """Whether tokens stand other than one apart, so that the positions of a
    part of a sequence are not those of its start plus a number."""

    fractional = False
    """Whether positions may be fractions."""

    pairs = False
    """Whether a token has two positions, a row and a column."""

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.built = True

    def check_length(self, tokens, *, unit="tokens"):
        """Raises `ValueError` unless there are positions for a sequence.

        Args:
            tokens: Length of the sequence.
            unit: What is numbered, for the message.
        """
        check_reach(self, tokens, unit)

    def call(
        self, inputs, *, lengths=None, reference_length=None, training=None
    ):
        check_tokens(inputs)
        lengths, holds = check_lengths(lengths, inputs)
        positions = self.sample(
            inputs,
            lengths=lengths,
            reference_length=check_reference_length(reference_length, inputs),
            training=training,
        )
        return keras.tree.map_structure(
            lambda axis: where_holds(holds, axis), positions
        )

    def sample(
        self, inputs, *, lengths=None, reference_length=None, training=None
    ):
        """Positions of the tokens of `inputs`; the arguments are checked."""
        raise NotImplementedError(
            f"{type(self).__name__} must implement `sample`."
        )

    def compute_output_shape(self, inputs_shape, lengths_shape=None):
        specs = self.compute_output_spec(
            keras.KerasTensor(inputs_shape),
            lengths=lengths_shape
            if lengths_shape is None
            else keras.KerasTensor(lengths_shape, dtype="int32"),
        )
        return keras.tree.map_structure(lambda spec: spec.shape, specs)

    def compute_output_spec(self, inputs, **kwargs):
        # Computed once on symbols, for the shape depends on what is drawn.
        return keras.Operation.compute_output_spec(self, inputs, **kwargs)

    def compute_mask(self, inputs, previous_mask=None):
        return None


def check_tokens(inputs):
    """Raises `ValueError` if inputs are no tensor of tokens `(B, T, ...)`."""
    if not hasattr(inputs, "shape") or len(inputs.shape) < 2:
        raise ValueError(
            "inputs must be a tensor of tokens, shape (B, T, ...); got "
            f"{getattr(inputs, 'shape', inputs)!r}."
        )


def check_sampler(name, sampler, *, pairs=False):
    """Returns a sampler or `None`, or raises `ValueError`.

    Args:
        name: Name of the argument.
        sampler: Its value.
        pairs: Whether it may give two positions to a token.
    """
    check_instance(
        name,
        sampler,
        PositionSampler,
        example="RandomizedPositions(max_position=2048)",
    )
    if sampler is not None and sampler.pairs and not pairs:
        raise ValueError(
            f"{name}={type(sampler).__name__} gives every token a row and a "
            "column, which only AxialEncoding takes: pass it to that, or "
            "choose a sampler of single positions."
        )
    return sampler


def count_tokens(inputs):
    """Number of tokens `T` of `(B, T, ...)`: an int where it is static."""
    return ops.shape(inputs)[1]


def check_reach(layer, count, unit):
    """Raises `ValueError` if a layer's `max_position` is below a count.

    Args:
        layer: Sampler or encoding, with a `max_position` or without.
        count: Number of positions needed.
        unit: What is numbered, for the message.
    """
    reach = getattr(layer, "max_position", count)
    if reach < count:
        raise ValueError(
            f"the longest sequence has {count} {unit}, but "
            f"{type(layer).__name__} has max_position={reach}: raise it to "
            f"{count} at least, or take shorter sequences."
        )
