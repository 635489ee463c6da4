"""Learned vectors of the positions, added to the embeddings."""

from typing import Any

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Initializer,
    Integer,
    OrDefault,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.guards import INVALID_POSITION, guard
from keras_lengen.checks.inputs import describe_range
from keras_lengen.layers.encodings.absolute import AbsoluteEncoding
from keras_lengen.layers.encodings.randomized import Randomized
from keras_lengen.layers.positions.base import PositionSampler, check_reach
from keras_lengen.types import InputShape, Positions, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class LearnedEncoding(AbsoluteEncoding):
    """Adds a learned vector per position to the embeddings.

    The output is `embeddings + table[positions]`.

    Stage: `add_to_embeddings`, `(B, T, M)` to the same. Weights: the table,
    `(max_position, M)`.
    Positions: integers from 0 to `max_position - 1`. Rows of positions that do
    not occur in training keep their initial values.

    Args:
        max_position: int, from 1 to `2 ** 24`. Number of rows of the table, at
            least the length of the longest sequence of training and
            evaluation; by default the sampler's `max_position`.
        initializer: Initializer of the table, or `None` for a truncated normal
            distribution with standard deviation 1.
        sampler: `PositionSampler` of integers below `max_position`, or `None`
            for positions 0, 1, 2, ...

    Raises:
        ValueError: If a sequence is longer than the table or positions are not
            integers; if the sampler gives fractions or positions without a
            row. If positions are known only when a compiled program runs,
            those outside the table end the program with an assertion; under
            XLA, they give NaN.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import LearnedEncoding
    >>> encoding = LearnedEncoding(max_position=2048)
    >>> encoding(ops.zeros((2, 5, 8))).shape
    TensorShape([2, 5, 8])

    Reference: Gehring et al., 2017, section 3.1.
    https://arxiv.org/abs/1705.03122
    """

    max_position: OrDefault[int] = argument(
        Integer(
            most=LARGEST_POSITION,
            example=64,
            what="the number of rows of the table",
        ),
        default=None,
    )
    initializer: Any = argument(
        OrDefault(Initializer(example="random_uniform")), default=None
    )

    defined_past_training = False
    takes_fractions = False
    takes_negative = False

    def assign(self, values: dict[str, Any]) -> None:
        values = dict(values)
        if values["max_position"] is None:
            given = values.get("sampler")
            values["max_position"] = getattr(given, "max_position", None)
        if values["initializer"] is None:
            # As in the code of Ruoss et al., 2023.
            values["initializer"] = keras.initializers.TruncatedNormal(
                stddev=1.0
            )
        super().assign(values)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("max_position", "max_shift"):
            reach = getattr(self.sampler, name, None)
            if reach is not None and reach > self.max_position:
                raise ValueError(
                    f"sampler={type(self.sampler).__name__} has "
                    f"{name}={reach}, but {type(self).__name__} has only "
                    f"max_position={self.max_position} rows: make the two "
                    "equal."
                )

    def build(self, query_shape: InputShape) -> None:
        super().build(query_shape)
        self.table = self.add_weight(
            name="table",
            shape=(self.max_position, query_shape[-1]),
            initializer=self.initializer,
            autocast=False,
        )

    def add_to_embeddings(
        self, embeddings: Tensor, positions: Positions
    ) -> Tensor:
        positions = self.check_positions(positions)
        # Under XLA, a look-up would clamp positions outside the table without
        # any sign; NaN makes them visible.
        inside = (positions >= 0) & (positions < self.max_position)
        rows = ops.take(self.table, ops.where(inside, positions, 0), axis=0)
        rows = ops.where(ops.expand_dims(inside, -1), rows, float("nan"))
        return embeddings + ops.cast(rows, embeddings.dtype)

    def check_length(
        self,
        tokens: int,
        *,
        sampler: PositionSampler | None = None,
        unit: str = "tokens",
    ) -> None:
        super().check_length(tokens, sampler=sampler, unit=unit)
        sampler = self.sampler if sampler is None else sampler
        if sampler.reads_tokens:
            # Tokens may share positions.
            return
        check_reach(self, tokens, unit)
        positions = sampler(ops.zeros((1, tokens)), training=False)
        # A sampler that draws may give larger positions in training than here.
        range_end = getattr(sampler, "max_position", 0) - 1
        top = max(int(ops.max(positions)), range_end)
        if top >= self.max_position:
            raise ValueError(
                f"positions of {type(sampler).__name__} reach {top}, but "
                f"{type(self).__name__} has {self.max_position} rows: give it "
                f"max_position={top + 1}."
            )
        self.check_positions(positions)

    def check_positions(self, positions: Tensor) -> Tensor:
        own = type(self).__name__
        dtype = keras.backend.standardize_dtype(positions.dtype)
        if not keras.backend.is_int_dtype(dtype):
            raise ValueError(
                f"{own} looks positions up in a table and needs "
                f"integers; got {dtype}: use an encoding without a table, "
                "such as SinusoidalEncoding."
            )
        tokens = 0 if self.sampler.reads_tokens else positions.shape[-1]
        if tokens is not None and tokens > self.max_position:
            raise ValueError(
                f"positions reach {tokens - 1}, but {own} has "
                f"{self.max_position} rows: raise max_position or use an "
                "encoding without a table."
            )
        known = ops.logical_or(
            positions == INVALID_POSITION,
            ops.logical_and(positions >= 0, positions < self.max_position),
        )
        guarded = guard(
            ops.expand_dims(positions, -1),
            known,
            f"positions must be from 0 to {self.max_position - 1}, the rows of "
            f"{own}; got numbers from ",
            *describe_range(positions),
            ": raise max_position or use an encoding without a table.",
        )
        return ops.squeeze(guarded, -1)


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedLearnedEncoding(Randomized, LearnedEncoding):
    """`LearnedEncoding` with randomized positions, which train every row.

    Takes the arguments of `RandomizedPositions` and `LearnedEncoding`;
    `max_position` is both the size of the range of positions and the number of
    rows of the table.

    The label-based encodings of Li & McClelland, 2022, are
    `max_position=50, resample="example"`: every sequence has its own ascending
    labels, drawn from a range as long as the longest sequence. The authors
    draw the labels of a training sequence once and keep them; here labels are
    drawn again at every use.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedLearnedEncoding
    >>> encoding = RandomizedLearnedEncoding(max_position=2048)
    >>> encoding(ops.ones((2, 5, 8))).shape
    TensorShape([2, 5, 8])

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    Label-based encodings: Li & McClelland, 2022.
    https://arxiv.org/abs/2210.00400
    """
