"""Queries and keys of a call of attention, of which chunks are cut."""

import dataclasses
from typing import Any, Self, TypeAlias

import keras
from keras import ops

from keras_lengen.layers.attention.visibility import Change, Visibility
from keras_lengen.types import Positions, Tensor

Tensors: TypeAlias = dict[str, Tensor]
"""Tensors by name."""


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """Some queries, all keys that they may see, and what parts read of them.

    Attributes:
        queries: Dict of the rotated `"query"` `(B, T, H, D)`, and of what
            parts have read of queries, `(B, T, ...)`.
        keys: Dict of the rotated `"key"` and the `"value"`, and of what parts
            have read of keys, each `(B, S, heads, width)`.
        positions: Positions of the queries, `(T,)` or `(B, T)`, or a pair.
        key_positions: Positions of the keys, or `None` if nothing reads them.
        indices: Indices of the queries among the keys, int32 `(T,)`.
        visible: `Visibility` of the queries and keys.
        prepared: What the encoding has prepared for them, or `None`.
    """

    queries: Tensors
    keys: Tensors
    positions: Positions
    key_positions: Positions | None
    indices: Tensor
    visible: Visibility
    prepared: Any = None

    # These two say where tensors have their axis of queries or keys.

    def map_queries(self, change: Change) -> Self:
        """Changes all tensors with an axis of queries."""
        return dataclasses.replace(
            self,
            queries={
                name: change(tensor, 1) for name, tensor in self.queries.items()
            },
            positions=_map_positions(change, self.positions),
            indices=change(self.indices, 0),
            visible=self.visible.map_queries(change),
        )

    def map_keys(self, change: Change) -> Self:
        """Changes all tensors with an axis of keys, but no attention mask."""
        return dataclasses.replace(
            self,
            keys={
                name: change(tensor, 1) for name, tensor in self.keys.items()
            },
            key_positions=_map_positions(change, self.key_positions),
            visible=self.visible.map_keys(change),
        )

    def see(self, **changes: Any) -> Self:
        """Changes attributes of the visibility."""
        visible = dataclasses.replace(self.visible, **changes)
        return dataclasses.replace(self, visible=visible)

    def repeat_heads(self) -> Self:
        """Gives each head of the queries keys and values of its own."""
        heads = self.queries["query"].shape[2]

        def repeat(tensor: Tensor) -> Tensor:
            groups = heads // tensor.shape[2]
            return tensor if groups == 1 else ops.repeat(tensor, groups, axis=2)

        keys = {name: repeat(tensor) for name, tensor in self.keys.items()}
        return dataclasses.replace(self, keys=keys)


def _map_positions(change: Change, positions: Positions | None) -> Any:
    """Changes positions, or both of a pair."""
    if positions is None:
        return None
    return keras.tree.map_structure(lambda axis: change(axis, -1), positions)
