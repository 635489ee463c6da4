"""What the parts of attention have in common."""

from typing import ClassVar

from keras_lengen.layers.attention.cache import Sizes
from keras_lengen.layers.attention.call import Tensors
from keras_lengen.layers.attention.context import Context
from keras_lengen.types import Tensor


class Part:
    """One part of a layer's attention, as an option or an encoding adds it.

    Parts know no layer. They are frozen dataclasses, so that Keras neither
    tracks nor saves the weights that they refer to. A layer makes them for
    each call; before it is built, their weights are `None`.

    Attributes:
        local: Whether the part needs no other keys than those that a query
            sees, so that a cache and chunks may leave out the keys outside of
            a window.
        mixes: Whether the part computes keys also from tokens before them.
    """

    local: ClassVar[bool] = True
    mixes: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """What messages call the part."""
        return type(self).__name__

    def cached_sizes(self) -> Sizes:
        """Finds the tensors of `read_keys`: heads and width of each."""
        return {}

    def read_keys(self, inputs: Tensor) -> Tensors:
        """Computes what the part reads of new keys, which a cache holds.

        Args:
            inputs: `(B, S, M)`, from which the keys were computed.

        Returns:
            Dict of tensors `(B, S, heads, width)`, for `Call.keys`.
        """
        return {}

    def read_queries(self, inputs: Tensor, context: Context) -> Tensors:
        """Computes what the part reads of queries.

        Args:
            inputs: `(B, T, M)`, from which the queries were computed.
            context: `Context`.

        Returns:
            Dict of tensors `(B, T, ...)`, for `Call.queries`.
        """
        return {}

    def enter(
        self, query: Tensor, key: Tensor | None, context: Context
    ) -> tuple[Tensor, Tensor | None]:
        """Changes queries and new keys, before a cache gets the keys.

        Args:
            query: `(B, T, H, D)`.
            key: `(B, S, heads, D)`, or `None` if there are no new keys.
            context: `Context`.
        """
        return query, key

    def resolve(
        self, query: Tensor, keys: Tensors, context: Context
    ) -> tuple[Tensor, Tensors]:
        """Changes queries and all keys, with those in a cache.

        Args:
            query: `(B, T, H, D)`.
            keys: Dict of tensors `(B, S, heads, width)`: the `"key"`, the
                `"value"` and those of `read_keys`.
            context: `Context`.
        """
        return query, keys

    def obstacle(self) -> str | None:
        """Says why the fused kernels cannot compute the part, if so."""
        return f"its kernels do not compute {self.name}"
