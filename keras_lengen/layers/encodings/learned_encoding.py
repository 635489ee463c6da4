"""A learned vector per position, added to the embeddings."""

import keras
from keras import ops

from keras_lengen.arguments import (
    LARGEST_POSITION,
    check_initializer,
    check_integer,
)
from keras_lengen.layers.encodings.base import AbsoluteEncoding, Randomized
from keras_lengen.layers.positions.base import check_reach
from keras_lengen.layers.side_inputs import INVALID_POSITION, demand


@keras.saving.register_keras_serializable(package="keras_lengen")
class LearnedEncoding(AbsoluteEncoding):
    """Adds a learned vector per position to the embeddings.

    Stage: `add_to_embeddings`, `(B, T, M)`. Weights: `(max_position, M)`.
    Positions: integers from 0 to `max_position - 1`. Rows of positions that
    training never shows stay as they were initialized.

    Args:
        max_position: Number of rows of the table, at least the longest
            sequence ever seen. `None`: as many as the sampler draws from.
        initializer: Initializer of the table.
        sampler: `PositionSampler` of integers below `max_position`, `None` for
            0, 1, 2, ...

    Raises:
        ValueError: If a sequence is longer than the table, or positions are
            fractional; if the sampler gives fractions or positions that have
            no row. Explicit positions outside of the table give NaN where
            a compiled program cannot raise.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import LearnedEncoding
    >>> encoding = LearnedEncoding(max_position=16)
    >>> encoding(ops.zeros((2, 5, 8))).shape
    TensorShape([2, 5, 8])

    Reference: Gehring et al., 2017, section 3.1.
    https://arxiv.org/abs/1705.03122
    """

    defined_past_training = False

    def __init__(
        self,
        *,
        max_position=None,
        initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if max_position is None:
            max_position = getattr(self.sampler, "max_position", None)
        self.max_position = check_integer(
            "max_position",
            max_position,
            most=LARGEST_POSITION,
            what="the number of rows of the table",
        )
        self._check_sampler()
        initializer = check_initializer("initializer", initializer)
        if initializer is None:
            # Standard deviation 1, as in the code of Ruoss et al., 2023.
            initializer = keras.initializers.TruncatedNormal(stddev=1.0)
        self.initializer = initializer

    def _check_sampler(self):
        sampler = self.sampler
        name = f"sampler={type(sampler).__name__}"
        if sampler.fractional:
            raise ValueError(
                f"{name} gives fractions, but LearnedEncoding looks integers "
                "up in a table: choose another sampler, or an encoding that "
                "computes, such as SinusoidalEncoding."
            )
        for argument in ("max_position", "max_shift"):
            reach = getattr(sampler, argument, None)
            if reach is not None and reach > self.max_position:
                raise ValueError(
                    f"{name} has {argument}={reach}, but LearnedEncoding only "
                    f"max_position={self.max_position} rows: make the two "
                    "equal."
                )

    def build(self, query_shape):
        super().build(query_shape)
        self.table = self.add_weight(
            name="table",
            shape=(self.max_position, query_shape[-1]),
            initializer=self.initializer,
            autocast=False,
        )

    def add_to_embeddings(self, embeddings, positions):
        self.check_positions(positions)
        # Compiled look-ups clamp what is out of range: let it show instead.
        inside = (positions >= 0) & (positions < self.max_position)
        rows = ops.take(self.table, ops.where(inside, positions, 0), axis=0)
        rows = ops.where(ops.expand_dims(inside, -1), rows, float("nan"))
        return embeddings + ops.cast(rows, embeddings.dtype)

    def check_length(self, tokens, *, sampler=None, unit="tokens"):
        super().check_length(tokens, sampler=sampler, unit=unit)
        check_reach(self, tokens, unit)
        sampler = self.sampler if sampler is None else sampler
        positions = sampler(ops.zeros((1, tokens)), training=False)
        # A sampler that draws may reach further in training.
        range_end = getattr(sampler, "max_position", 0) - 1
        top = max(int(ops.max(positions)), range_end)
        if top >= self.max_position:
            raise ValueError(
                f"positions of {type(sampler).__name__} reach {top}, but "
                f"{type(self).__name__} has {self.max_position} rows: give it "
                f"max_position={top + 1}."
            )
        self.check_positions(positions)

    def check_positions(self, positions):
        dtype = keras.backend.standardize_dtype(positions.dtype)
        if not keras.backend.is_int_dtype(dtype):
            raise ValueError(
                "LearnedEncoding looks positions up in a table and needs "
                f"integers; got {dtype}: use an encoding that "
                "computes, such as SinusoidalEncoding."
            )
        tokens = positions.shape[-1]
        if tokens is not None and tokens > self.max_position:
            raise ValueError(
                f"positions reach {tokens - 1}, but LearnedEncoding has "
                f"{self.max_position} rows: raise max_position or use an "
                "encoding without a table."
            )
        demand(
            ops.logical_or(
                positions == INVALID_POSITION,
                ops.logical_and(positions >= 0, positions < self.max_position),
            ),
            f"positions must be from 0 to {self.max_position - 1}, those of "
            "LearnedEncoding's rows; got numbers from ",
            ops.min(positions, initial=0),
            " to ",
            ops.max(positions, initial=0),
            ": raise max_position or use an encoding without a table.",
        )

    def get_config(self):
        return {
            **super().get_config(),
            "max_position": self.max_position,
            "initializer": keras.initializers.serialize(self.initializer),
        }


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedLearnedEncoding(Randomized, LearnedEncoding):
    """`LearnedEncoding` at randomized positions, so that all rows train.

    Takes the arguments of `RandomizedPositions` and `LearnedEncoding`;
    `max_position` is both the range of positions and the rows of the table.

    Label-based encodings are `max_position=50, resample="example"`: every
    sequence has its own ascending labels, from a range that the longest
    sequence fills. Their authors draw the labels of a training sequence once
    and keep them; here they are drawn at every use.

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    Label-based encodings: Li & McClelland, 2022.
    https://arxiv.org/abs/2210.00400
    """
