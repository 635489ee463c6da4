"""Base class of the position samplers, and checks of samplers."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_lengen.checks.arguments import Seed
from keras_lengen.checks.constructors import WithArguments, argument
from keras_lengen.checks.guards import mark_like
from keras_lengen.checks.inputs import (
    NamedInputs,
    read_lengths,
    read_reference_length,
)
from keras_lengen.layers.random_layer import RandomLayer, SeedGenerator
from keras_lengen.types import Positions, Shape, Size, Tensor, TensorLike


class PositionSampler(WithArguments, NamedInputs, RandomLayer):
    """Base class of position samplers, which assign positions to tokens.

    A sampler reads the shape of its inputs and returns one number per token.
    Every sampler works with every encoding, with four exceptions: encodings
    with a table need integers, only `AxialEncoding` takes the pairs of
    `GridPositions`, `XPos` needs a sampler that `is_increasing`, and `FIRE` one
    without `negative` positions. Subclasses implement `sample`, which receives
    arguments that `call` has checked.

    Call arguments:
        inputs: Tensor `(B, T, ...)` of any dtype; only its shape is read.
        lengths: Integer tensor `()` or `(B,)`, true lengths of the sequences,
            from 0 to `T`; `None` if there is no padding. Positions are drawn
            for the true length; the positions of padding are finite but have
            no meaning.
        reference_length: Number above 0 or tensor `()` or `(B,)`. Length in
            tokens by which an interpolating sampler scales; by default the true
            length.
        training: bool or `None`, whether the call belongs to training.

    Returns:
        int32 or float32 positions, `(T,)` if all examples of the batch have
        the same positions, `(B, T)` otherwise.

    Raises:
        ValueError: If `inputs` have fewer than two axes, or lengths are out of
            range or do not fit the batch. If lengths are known only when a
            compiled program runs, the program ends with an assertion; under
            XLA, positions become invalid, and every encoding turns invalid
            positions to NaN.
    """

    is_random = False
    """Whether two calls may return different positions."""

    stretches = False
    """Whether the distance between neighbouring tokens may differ from 1. The
    positions of a part of a sequence then do not follow from its start."""

    fractional = False
    """Whether positions may be fractions."""

    negative = False
    """Whether positions may be below 0."""

    position_axes = 1
    """How many positions a token has: 1, or 2 for a row and a column."""

    reads_tokens = False
    """Whether positions depend on token ids, which only models have."""

    is_increasing = True
    """Whether no token has a larger position than a later token. Of pairs, this
    says it of the rows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.built = True

    if TYPE_CHECKING:

        def __call__(
            self,
            inputs: TensorLike,
            *,
            lengths: TensorLike | None = None,
            reference_length: TensorLike | None = None,
            training: bool | None = None,
        ) -> Positions: ...

    def check_length(self, tokens: int, *, unit: str = "tokens") -> None:
        """Checks that a sequence is not longer than the range of positions.

        Args:
            tokens: int, number of tokens of the sequence.
            unit: str, what is counted, for the error message.

        Raises:
            ValueError: If there are not enough positions for the sequence.
        """
        check_reach(self, tokens, unit)

    def call(
        self,
        inputs: TensorLike,
        *,
        lengths: TensorLike | None = None,
        reference_length: TensorLike | None = None,
        training: bool | None = None,
    ) -> Positions:
        self.check_inputs(inputs)
        lengths = read_lengths(lengths, inputs)
        positions = self.sample(
            inputs,
            lengths=lengths,
            reference_length=read_reference_length(reference_length, inputs),
            training=training,
        )
        return mark_like(positions, lengths)

    def check_inputs(self, inputs: TensorLike) -> None:
        """Raises `ValueError` unless inputs are a tensor `(B, T, ...)`."""
        check_tokens(inputs)

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> Positions:
        """Computes or draws positions; `call` has checked the arguments.

        Args:
            inputs: Tensor `(B, T, ...)`; only its shape is read.
            lengths: int32 tensor `()` or `(B,)`, true lengths from 0 to `T`,
                or `None` if there is no padding.
            reference_length: float32 tensor `()` or `(B,)` above 0, or `None`.
            training: bool or `None`, whether the call belongs to training.

        Returns:
            int32 or float32 positions `(T,)` or `(B, T)`; a pair of these if
            the sampler gives pairs.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement `sample`."
        )

    def compute_output_shape(
        self, inputs_shape: Shape, lengths_shape: Shape | None = None
    ) -> Any:
        specs = self.compute_output_spec(
            keras.KerasTensor(inputs_shape),
            lengths=lengths_shape
            if lengths_shape is None
            else keras.KerasTensor(lengths_shape, dtype="int32"),
        )
        return keras.tree.map_structure(lambda spec: spec.shape, specs)

    def compute_output_spec(self, inputs: Tensor, **kwargs: Any) -> Any:
        # Runs `call` on symbols, because the shape depends on the arguments.
        return keras.Operation.compute_output_spec(self, inputs, **kwargs)

    def compute_mask(
        self, inputs: Tensor, previous_mask: Tensor | None = None
    ) -> None:
        return None


def check_tokens(inputs: Any) -> None:
    """Raises `ValueError` unless inputs are a tensor `(B, T, ...)`."""
    if not hasattr(inputs, "shape") or len(inputs.shape) < 2:
        raise ValueError(
            "inputs must be a tensor of tokens, shape (B, T, ...); got "
            f"{getattr(inputs, 'shape', inputs)!r}."
        )


class Seeded(WithArguments):
    """Argument of samplers that draw, and of encodings that contain one."""

    seed: int | None = argument(Seed(), default=None)


class RandomSampler(Seeded, PositionSampler):
    """Base class of the samplers that draw positions from a seed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seed_generator = SeedGenerator(self.seed)


def count_tokens(inputs: Tensor) -> Size:
    """Counts the tokens `T` of `(B, T, ...)`; an int if `T` is static."""
    return ops.shape(inputs)[1]


def check_reach(layer: Any, count: int, unit: str) -> None:
    """Raises `ValueError` if a layer has too small a `max_position`.

    Args:
        layer: Sampler or encoding, with or without a `max_position`.
        count: int, number of positions needed.
        unit: str, what is counted, for the error message.
    """
    reach = getattr(layer, "max_position", count)
    if reach < count:
        raise ValueError(
            f"the longest sequence has {count} {unit}, but "
            f"{type(layer).__name__} has max_position={reach}: raise "
            f"max_position to at least {count}, or take shorter sequences."
        )
