"""Positions on a grid: the row and column of every token."""

import keras
from keras import ops

from keras_lengen.arguments import LARGEST_POSITION, check_integer
from keras_lengen.layers.positions.base import (
    PositionSampler,
    check_sampler,
    count_tokens,
)
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions


@keras.saving.register_keras_serializable(package="keras_lengen")
class GridPositions(PositionSampler):
    """Assigns a row and a column to every token of an image read row by row.

    Token `i` is in row `i // width` and column `i % width`. One sampler
    assigns a position to every row, another one to every column. For use with
    `AxialEncoding`.

    Args:
        width: int, from 1 to `2 ** 24`. Number of tokens in a row, including
            the delimiter if rows end with one.
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
    >>> rows, columns = GridPositions(width=3)(ops.zeros((1, 7)))
    >>> rows.numpy().tolist(), columns.numpy().tolist()
    ([0, 0, 0, 1, 1, 1, 2], [0, 1, 2, 0, 1, 2, 0])

    Reference: Ho et al., 2019, section 3 (positions of every axis of their
    own). https://arxiv.org/abs/1912.12180
    """

    # The rows and columns of a part of a sequence do not follow from its start.
    stretches = True
    pairs = True

    def __init__(self, *, width, row=None, column=None, **kwargs):
        super().__init__(**kwargs)
        self.width = check_integer(
            "width", width, most=LARGEST_POSITION, what="the tokens of a row"
        )
        self.row = check_sampler("row", row) or OrdinalPositions()
        self.column = check_sampler("column", column) or OrdinalPositions()

    @property
    def draws(self):
        return self.row.draws or self.column.draws

    def rows(self, tokens):
        """Counts the rows of a sequence; the last row may be incomplete."""
        return -(-tokens // self.width)

    def check_length(self, tokens, *, unit="tokens"):
        self.row.check_length(self.rows(tokens), unit="rows")
        self.column.check_length(self.width, unit="columns")

    def sample(
        self, inputs, *, lengths=None, reference_length=None, training=None
    ):
        tokens = count_tokens(inputs)
        indices = ops.arange(tokens, dtype="int32")
        row_lengths = None
        if lengths is not None:
            lengths = ops.cast(lengths, "int32")
            row_lengths = (lengths + self.width - 1) // self.width
        batch_size = ops.shape(inputs)[0]
        rows = self.row(
            # Samplers read only the shape.
            ops.zeros((batch_size, self.rows(tokens))),
            lengths=row_lengths,
            training=training,
        )
        columns = self.column(
            ops.zeros((batch_size, self.width)), training=training
        )
        return (
            ops.take(rows, indices // self.width, axis=-1),
            ops.take(columns, indices % self.width, axis=-1),
        )

    def get_config(self):
        return {
            **super().get_config(),
            "width": self.width,
            "row": keras.saving.serialize_keras_object(self.row),
            "column": keras.saving.serialize_keras_object(self.column),
        }

    @classmethod
    def from_config(cls, config):
        samplers = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("row", "column")
        }
        return cls(**{**config, **samplers})
