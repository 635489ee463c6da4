"""Base class of rotations whose far distances differ from those of RoPE."""

from typing import Any

from keras import ops

from keras_lengen.layers.encodings.base import (
    AttentionSpec,
    expand_positions,
)
from keras_lengen.layers.encodings.distances import find_signed_distances
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.types import Positions, Size, Tensor


class NearFarRoPE(RoPE):
    """Rotates near keys as `RoPE` does, and far keys by other distances.

    A model trained with `RoPE` has seen no distance beyond its trained length.
    The subclasses replace distances from `far_distance` on by distances that
    the model has seen, so it can read longer sequences without training.

    No single rotation does this. `rotate` therefore returns two rotations of
    every query and key, side by side, `(B, T, H, 2 D)`: the first half is that
    of `RoPE`, the second half that at the positions of `find_far_positions`. A
    cache holds both. `multiply` computes the products of both halves, and
    selects one of them for each pair by its distance, the query's position
    minus the key's.

    Subclasses implement `far_distance` and `find_far_positions`.
    """

    causal_only = True
    num_rotations = 2
    reads_key_positions = True

    @property
    def far_distance(self) -> int:
        """Smallest distance of far keys, in positions."""
        raise NotImplementedError

    def find_far_positions(
        self, query_positions: Tensor, key_positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Computes the positions whose differences are the far distances.

        Args:
            query_positions: float32 `(T,)` or `(B, T)`.
            key_positions: float32 `(S,)` or `(B, S)`.

        Returns:
            Positions of queries and keys, of the same shapes, and NaN where
            the given ones are.
        """
        raise NotImplementedError

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        far_positions = self.find_far_positions(
            expand_positions(query_positions, 0),
            expand_positions(key_positions, 0),
        )
        near = super().prepare(query_positions, key_positions, spec)
        return near, super().prepare(*far_positions, spec)

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
        if prepared is None:
            spec = AttentionSpec.of(query, length=length)
            prepared = self.prepare(query_positions, key_positions, spec)
        near, far = prepared
        positions = query_positions, key_positions
        near = super().rotate(query, key, *positions, prepared=near)
        far = super().rotate(query, key, *positions, prepared=far)
        query, key = (
            ops.concatenate(both, axis=-1)
            for both in zip(near, far, strict=True)
        )
        return query, key

    def multiply(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: Positions,
        key_positions: Positions,
    ) -> Tensor:
        positions = query_positions, key_positions
        near_query, far_query = ops.split(query, 2, axis=-1)
        near_key, far_key = ops.split(key, 2, axis=-1)
        near = super().multiply(near_query, near_key, *positions)
        far = super().multiply(far_query, far_key, *positions)
        distances = -find_signed_distances(*positions, "positions")
        # (T, S) or (B, T, S) to (1 or B, 1, T, S).
        is_near = ops.expand_dims(distances < self.far_distance, -3)
        return ops.where(is_near, near, far)
