"""Encoding of rows and columns, each by its own encoding."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import keras
from keras import ops

from keras_lengen.checks.arguments import Boolean
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.inputs import (
    is_pair,
    read_reference_length,
)
from keras_lengen.layers.encodings.base import (
    AttentionSpec,
    EncodingArgument,
    PositionalEncoding,
    pass_on,
)
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions
from keras_lengen.layers.positions.sampler_argument import SamplerArgument
from keras_lengen.types import (
    InputShape,
    PositionPair,
    Positions,
    Size,
    Tensor,
    TensorLike,
)


@keras.saving.register_keras_serializable(package="keras_lengen")
class AxialEncoding(PositionalEncoding):
    """Encodes rows in one half of the features or heads, columns in the other.

    Two encodings act at the same stage, `row` on the first half and `column`
    on the second half: of the features of the embeddings, of the features of
    every head (rotation), or of the heads (bias).

    Stage: that of the two encodings; shapes as in `PositionalEncoding`.
    Positions: a pair of tensors, rows and columns, each `(T,)` or `(B, T)`, as
    `GridPositions` returns them; numbers that `row` and `column` accept. Tokens
    in earlier rows may have larger columns, so `column` treats keys on both
    sides as in bidirectional attention.

    Args:
        row: `PositionalEncoding` of the rows.
        column: `PositionalEncoding` of the columns, of the same stage.
        sampler: `PositionSampler` of pairs, such as `GridPositions`, or `None`
            if positions are always given.

    Raises:
        ValueError: If the stages differ, `row` or `column` has a sampler of
            its own, `sampler` does not give pairs, `row` counts tokens or
            rotates twice, `column` is for causal attention only, the number of
            features or heads is odd, or positions are not pairs.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import AxialEncoding, GridPositions
    >>> from keras_lengen.layers import ALiBi, RoPE
    >>> bias = AxialEncoding(
    ...     row=ALiBi(), column=ALiBi(), sampler=GridPositions(width=16))
    >>> bias(ops.ones((2, 20, 4, 8))).shape
    TensorShape([2, 4, 20, 20])
    >>> encoding = AxialEncoding(
    ...     row=RoPE(), column=RoPE(), sampler=GridPositions(width=5))
    >>> encoding(ops.ones((2, 20, 4, 8))).shape
    TensorShape([2, 20, 4, 8])

    Reference: Ho et al., 2019, section 3 (separate positions for each axis).
    https://arxiv.org/abs/1912.12180
    """

    row: PositionalEncoding = argument(EncodingArgument())
    column: PositionalEncoding = argument(EncodingArgument())
    sampler: SamplerArgument = argument(
        SamplerArgument(position_axes=2), default=None
    )

    stage: ClassVar[str | None] = "embeddings"  # Replaced by its axes'.
    position_axes = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        # The base class replaces `None` by OrdinalPositions.
        if not (
            self.sampler.position_axes == 2
            or isinstance(self.sampler, OrdinalPositions)
        ):
            raise ValueError(
                "sampler must give pairs, as GridPositions(width=23) does, or "
                f"be None; got a {type(self.sampler).__name__}."
            )
        _check_axes(self.row, self.column)
        self.stage = self.row.stage  # type: ignore[misc]
        if self.stage == "embeddings":
            self.query_ranks = (3,)  # type: ignore[misc]
        self.combine_traits(self.row, self.column)
        if self.sampler.position_axes == 2:
            self.row.check_numbers(self.sampler.row)
            self.column.check_numbers(self.sampler.column)

    if TYPE_CHECKING:

        def __call__(
            self,
            query: TensorLike,
            key: TensorLike | None = None,
            *,
            positions: Positions | None = None,
            key_positions: Positions | None = None,
            start_index: Size = 0,
            causal: bool = False,
            length: TensorLike | None = None,
            training: bool | None = None,
            mask: TensorLike | None = None,
        ) -> Any: ...

    @property
    def _axis(self) -> int:
        """The axis that is split in halves: heads or features."""
        return 2 if self.stage == "bias" else -1

    def check_length(
        self,
        tokens: int,
        *,
        sampler: PositionSampler | None = None,
        unit: str = "tokens",
    ) -> None:
        grid = self.sampler if sampler is None else sampler
        if grid.position_axes != 2:
            raise ValueError(
                "AxialEncoding needs positions of rows and of columns: give it "
                f"sampler=GridPositions(width=...), not {type(grid).__name__}."
            )
        rows, columns = grid.shape(tokens)
        self.row.check_length(rows, sampler=grid.row, unit="rows")
        self.column.check_length(columns, sampler=grid.column, unit="columns")

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        shapes = []
        for given in (query_shape, key_shape or query_shape):
            shape = list(given)
            if shape[self._axis] % 2:
                raise ValueError(
                    f"rows and columns cannot share {shape[self._axis]} "
                    f"{'heads' if self.stage == 'bias' else 'features'} "
                    "equally: choose an even number."
                )
            shape[self._axis] //= 2
            shapes.append(tuple(shape))
        for encoding in (self.row, self.column):
            if encoding.built:
                encoding.check_widths(shapes[0])
            else:
                encoding.build(*shapes[: 1 if key_shape is None else 2])

    def call(
        self,
        query: TensorLike,
        key: TensorLike | None = None,
        *,
        positions: Positions | None = None,
        key_positions: Positions | None = None,
        start_index: Size = 0,
        causal: bool = False,
        length: TensorLike | None = None,
        training: bool | None = None,
        mask: TensorLike | None = None,
    ) -> Any:
        Boolean().check("causal", causal)
        if self.stage == "embeddings":
            self._check(query, query)
            positions = self._find_positions(
                query, positions, start_index, mask, training
            )
            return self.add_to_embeddings(self._cast(query), positions)
        pair = (query, query if key is None else key)
        length = read_reference_length(length, query, name="length")
        positions, key_positions = self._find_pair_positions(
            *pair, positions, key_positions, start_index, training
        )
        if self.stage == "bias":
            return self.attention_bias(
                *pair,
                positions,
                key_positions,
                causal=causal and self.sampler.is_increasing,
            )
        pair = tuple(map(self._cast, pair))
        pair = self.rotate(*pair, positions, key_positions, length=length)
        return pair[0] if key is None else pair

    def given_positions(
        self, positions: TensorLike, inputs: Tensor, *, name: str = "positions"
    ) -> Positions:
        return tuple(
            encoding.given_positions(axis, inputs, name=name)
            for encoding, axis in zip(
                (self.row, self.column), _check_pair(positions), strict=True
            )
        )

    def add_to_embeddings(
        self, embeddings: Tensor, positions: Positions
    ) -> Tensor:
        halves = zip(
            (self.row, self.column),
            self._split_in_halves(embeddings),
            _check_pair(positions),
            strict=True,
        )
        return ops.concatenate(
            [
                encoding.add_to_embeddings(half, half_positions)
                for encoding, half, half_positions in halves
            ],
            axis=-1,
        )

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        if self.stage == "bias":
            spec = spec._replace(heads=spec.heads // 2)
        else:
            spec = spec._replace(width=spec.width // 2)
        # Columns begin anew in every row.
        specs = (spec, spec._replace(causal=False))
        prepared = tuple(
            encoding.prepare(queries, keys, of_axis)
            for encoding, of_axis, queries, keys in zip(
                (self.row, self.column),
                specs,
                _check_pair(query_positions),
                _check_pair(key_positions),
                strict=True,
            )
        )
        return None if prepared == (None, None) else prepared

    def rotate(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: Positions,
        key_positions: Positions,
        *,
        length: Size | None = None,
        prepared: Any = None,
    ) -> tuple[Tensor, Tensor]:
        if self.stage != "rotation":
            return query, key
        rotated = [
            encoding.rotate(*half, length=length, **pass_on(known))
            for known, (encoding, *half) in zip(
                prepared or (None, None),
                self._zip_axes(query, key, query_positions, key_positions),
                strict=True,
            )
        ]
        return tuple(
            ops.concatenate(halves, axis=-1)
            for halves in zip(*rotated, strict=True)
        )

    def attention_bias(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: Positions,
        key_positions: Positions,
        *,
        causal: bool = False,
        prepared: Any = None,
    ) -> Tensor | None:
        if self.stage != "bias":
            return None
        biases = [
            encoding.attention_bias(*half, causal=one_sided, **pass_on(known))
            for one_sided, known, (encoding, *half) in zip(
                # Columns begin anew in every row.
                (causal, False),
                prepared or (None, None),
                self._zip_axes(query, key, query_positions, key_positions),
                strict=True,
            )
        ]
        # A bias may have size 1 along the axes of the batch or of the heads.
        shape = (
            ops.shape(query)[0],
            query.shape[2] // 2,
            ops.shape(query)[1],
            ops.shape(key)[1],
        )
        return ops.concatenate(
            [ops.broadcast_to(bias, shape) for bias in biases], axis=1
        )

    def _split_in_halves(self, tensor: Tensor) -> list[Tensor]:
        return ops.split(tensor, 2, axis=self._axis)

    def _zip_axes(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: Positions,
        key_positions: Positions,
    ) -> Iterator[tuple[Any, ...]]:
        """Pairs each of the two encodings with the arguments of its stage."""
        return zip(
            (self.row, self.column),
            self._split_in_halves(query),
            self._split_in_halves(key),
            _check_pair(query_positions),
            _check_pair(key_positions),
            strict=True,
        )


def _check_pair(positions: Positions) -> PositionPair:
    """Returns positions of rows and columns, or raises `ValueError`."""
    if not is_pair(positions):
        raise ValueError(
            "AxialEncoding needs positions of rows and of columns: give it "
            "sampler=GridPositions(width=...), or pass a pair."
        )
    return positions


def _check_axes(row: PositionalEncoding, column: PositionalEncoding) -> None:
    """Raises `ValueError` unless two encodings can be those of the axes."""
    for name, encoding in (("row", row), ("column", column)):
        if not isinstance(encoding.sampler, OrdinalPositions):
            raise ValueError(
                f"{name} has no use for the sampler that "
                f"{type(encoding).__name__} brings: pass the plain "
                "encoding, and sampler=GridPositions(width=..., row=..., "
                "column=...) with samplers of rows and columns."
            )
    if row.stage is None or row.stage != column.stage:
        raise ValueError(
            "row and column must be encodings of one stage; got "
            f"{type(row).__name__} ({row.stage}) and "
            f"{type(column).__name__} ({column.stage})."
        )
    if row.uses_token_index:
        raise ValueError(
            f"row={type(row).__name__} counts tokens and has no use for "
            "rows: choose another encoding, such as ALiBi."
        )
    for name, encoding in (("row", row), ("column", column)):
        if encoding.reads_inputs:
            raise ValueError(
                f"{name}={type(encoding).__name__} rotates by what tokens "
                "contain and has no use for rows and columns: choose "
                "another encoding, such as RoPE."
            )
        if encoding.num_rotations > 1:
            raise ValueError(
                f"{name}={type(encoding).__name__} returns queries and "
                "keys that are wider, for which one half of the features "
                "has no room: choose another encoding, such as RoPE."
            )
    if column.causal_only:
        raise ValueError(
            f"column={type(column).__name__} needs positions that grow "
            "from token to token, but columns begin anew in every row: "
            "choose another encoding, such as RoPE or ALiBi."
        )
