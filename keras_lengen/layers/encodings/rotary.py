"""Base class of the encodings that rotate queries and keys."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_lengen.checks.inputs import read_reference_length
from keras_lengen.layers.encodings.base import (
    PositionalEncoding,
    check_no_key_positions,
)
from keras_lengen.types import Shape, Size, TensorLike


class RotaryEncoding(PositionalEncoding):
    """Base class of encodings that rotate queries and keys.

    Subclasses implement `rotate`, and `prepare` for what all layers share.
    Called as a layer, the encoding takes a query, or a query and a key, of
    shape `(B, T, H, D)` or `(B, T, D)`, and returns the same. The call argument
    `length` is the length of the whole sequence in tokens, a number or a tensor
    `()` or `(B,)`, for encodings that depend on it; `None` for the number of
    keys.
    """

    stage = "rotation"
    query_ranks = (3, 4)

    if TYPE_CHECKING:

        def __call__(
            self,
            query: TensorLike,
            key: TensorLike | None = None,
            *,
            positions: TensorLike | None = None,
            key_positions: TensorLike | None = None,
            start_index: Size = 0,
            length: TensorLike | None = None,
            training: bool | None = None,
        ) -> Any: ...

    def call(
        self,
        query: TensorLike,
        key: TensorLike | None = None,
        *,
        positions: TensorLike | None = None,
        key_positions: TensorLike | None = None,
        start_index: Size = 0,
        length: TensorLike | None = None,
        training: bool | None = None,
    ) -> Any:
        return self._rotate_inputs(
            *(query, key, positions, key_positions),
            start_index=start_index,
            length=length,
            training=training,
        )

    def _rotate_inputs(
        self,
        query: TensorLike,
        key: TensorLike | None,
        positions: TensorLike | None,
        key_positions: TensorLike | None,
        *,
        start_index: Size,
        length: TensorLike | None,
        training: bool | None,
        **others: Any,
    ) -> Any:
        """Checks the call arguments and rotates; `rotate` gets the `others`."""
        alone = key is None
        if alone:
            check_no_key_positions(key_positions)
            key = query
        length = read_reference_length(length, query, name="length")
        positions, key_positions = self._find_pair_positions(
            query, key, positions, key_positions, start_index, training
        )
        query = self._cast(query)
        key = query if alone else self._cast(key)
        flat = len(query.shape) == 3
        if flat:
            query = ops.expand_dims(query, 2)
            key = query if alone else ops.expand_dims(key, 2)
        query, key = self.rotate(
            query, key, positions, key_positions, length=length, **others
        )
        if flat:
            query, key = ops.squeeze(query, 2), ops.squeeze(key, 2)
        return query if alone else (query, key)

    def compute_output_shape(
        self, query_shape: Shape, key_shape: Shape | None = None
    ) -> Any:
        return keras.tree.map_shape_structure(
            lambda shape: (*shape[:-1], self.num_rotations * shape[-1]),
            super().compute_output_shape(query_shape, key_shape),
        )
