"""Positions on a grid: the row and column of every token."""

from typing import TYPE_CHECKING

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import LARGEST_POSITION, Integer, Optional
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.positions.base import PositionSampler, count_tokens
from keras_lengen.layers.positions.sampler_argument import SamplerArgument
from keras_lengen.types import PositionPair, Size, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_lengen")
class GridPositions(PositionSampler):
    """Assigns a row and a column to every token of an image read row by row.

    Token `i` is in row `i // width` and column `i % width`. One sampler
    assigns a position to every row, another one to every column. For use with
    `AxialEncoding`.

    Args:
        width: int, from 1 to `2 ** 24`. Number of tokens in a row, including
            the delimiter if rows end with one. `None`: for images of several
            sizes, without padding, whose rows end with a delimiter. The rows
            of each sequence are then those of the most nearly square image
            with that number of tokens: 506 tokens are 22 rows of 23.
        row: `PositionSampler` of the rows, or `None` for 0, 1, 2, ...
        column: `PositionSampler` of the columns, or `None` for 0, 1, 2, ...

    Raises:
        ValueError: If an argument is out of range, or `row` or `column` is not
            a sampler of single positions.

    Returns:
        A pair of the positions of the rows and of the columns, each int32 or
        float32 `(T,)` or `(B, T)`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import GridPositions
    >>> rows, columns = GridPositions(width=8)(ops.zeros((1, 10)))
    >>> rows.numpy().tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]
    >>> columns.numpy().tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]

    Reference: Ho et al., 2019, section 3 (separate positions for each axis).
    https://arxiv.org/abs/1912.12180
    """

    # The rows and columns of a part of a sequence do not follow from its start.
    stretches = True
    position_axes = 2

    width: int | None = argument(
        Optional(
            Integer(
                most=LARGEST_POSITION, example=3, what="the tokens of a row"
            )
        ),
        default=None,
    )
    row: SamplerArgument = argument(SamplerArgument(), default=None)
    column: SamplerArgument = argument(SamplerArgument(), default=None)

    if TYPE_CHECKING:

        def __call__(
            self,
            inputs: TensorLike,
            *,
            lengths: TensorLike | None = None,
            reference_length: TensorLike | None = None,
            training: bool | None = None,
        ) -> PositionPair: ...

    @property
    def is_random(self) -> bool:
        return self.row.is_random or self.column.is_random

    @property
    def fractional(self) -> bool:
        return self.row.fractional or self.column.fractional

    @property
    def negative(self) -> bool:
        return self.row.negative or self.column.negative

    @property
    def is_increasing(self) -> bool:
        """`is_increasing` of the rows; columns never keep the order."""
        return self.row.is_increasing

    def shape(self, tokens: Size) -> tuple[Size, Size]:
        """Counts rows and columns of a sequence; the last row may be short.

        Args:
            tokens: Number of tokens, an int or a scalar integer tensor.

        Returns:
            Two numbers of the same kind.
        """
        width = self.width or _nearly_square_width(tokens)
        # Not -(-tokens // width): the division of ONNX rounds towards zero.
        return (tokens + width - 1) // width, width

    def check_length(self, tokens: int, *, unit: str = "tokens") -> None:
        rows, columns = self.shape(tokens)
        self.row.check_length(rows, unit="rows")
        self.column.check_length(columns, unit="columns")

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> PositionPair:
        tokens = count_tokens(inputs)
        height, width = self.shape(tokens)
        indices = ops.arange(tokens, dtype="int32")
        row_lengths = None
        if lengths is not None:
            lengths = ops.cast(lengths, "int32")
            row_lengths = (lengths + width - 1) // width
        batch_size = ops.shape(inputs)[0]
        rows = self.row(
            # Samplers read only the shape.
            ops.zeros((batch_size, height)),
            lengths=row_lengths,
            training=training,
        )
        columns = self.column(ops.zeros((batch_size, width)), training=training)
        return (
            ops.take(rows, indices // width, axis=-1),
            ops.take(columns, indices % width, axis=-1),
        )


def _nearly_square_width(tokens: Size) -> Size:
    """Returns the tokens of a row of an image, delimiter included.

    The image has H rows of W pixels and a delimiter, `H * (W + 1) == tokens`,
    with the smallest `|H - W|`, and among equal ones the smallest H.

    Args:
        tokens: Number of tokens, an int or a scalar integer tensor.

    Returns:
        A number of the same kind.
    """
    # TensorFlow may know the length only when the program runs.
    xp = np if isinstance(tokens, int) else ops
    tokens = xp.maximum(tokens, 1)
    rows = xp.arange(1, tokens + 1, dtype="int32")
    widths = tokens // rows
    distance = xp.abs(rows - (widths - 1))
    distance = xp.where(rows * widths == tokens, distance, tokens + 1)
    width = xp.take(widths, xp.argmin(distance))
    return int(width) if xp is np else width
