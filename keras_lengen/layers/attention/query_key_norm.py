"""Normalization of queries and keys."""

import dataclasses
from typing import Any

from keras import ops

from keras_lengen.layers.attention.context import Context
from keras_lengen.layers.attention.parts import Part
from keras_lengen.types import Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class QueryKeyNorm(Part):
    """RMS normalization of the features of each head.

    Attributes:
        query_scale: Variable `(D,)`, factors of the normalized queries.
        key_scale: The same for the keys.
        epsilon: float, added to the mean of the squares.
    """

    query_scale: Any
    key_scale: Any
    epsilon: float

    def enter(
        self, query: Tensor, key: Tensor | None, context: Context
    ) -> tuple[Tensor, Tensor | None]:
        query = self._normalize(query, self.query_scale)
        if key is not None:
            key = self._normalize(key, self.key_scale)
        return query, key

    def obstacle(self) -> str | None:
        return None

    def _normalize(self, features: Tensor, scale: Any) -> Tensor:
        # float32, because squares of float16 numbers overflow.
        numbers = ops.cast(features, "float32")
        square = ops.mean(ops.square(numbers), axis=-1, keepdims=True)
        numbers = numbers * ops.rsqrt(square + self.epsilon)
        numbers = numbers * ops.cast(scale, "float32")
        return ops.cast(numbers, features.dtype)
