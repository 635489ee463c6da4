"""What the parts of attention have in common, and what they read."""

import dataclasses

from keras_lengen.layers.attention.chunks import Tensors
from keras_lengen.layers.attention.inputs import Context
from keras_lengen.layers.attention.visibility import Visibility
from keras_lengen.types import Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """What parts read of some queries and of all keys.

    Attributes:
        queries: Dict of the rotated `"query"` `(B, T, H, D)`, its
            `"positions"`, its `"indices"` among the keys, int32 `(T,)`, and
            what parts have prepared.
        keys: Dict of the rotated `"key"` and the `"value"` `(B, S, H, width)`,
            their `"positions"`, a boolean `"mask"` `(B, S)` or `None`, and
            perhaps what the encoding has `"prepared"`.
        visible: `Visibility` of the queries and keys.
    """

    queries: Tensors
    keys: Tensors
    visible: Visibility


class Part:
    """One part of a layer's attention, as an option or an encoding adds it.

    Parts know no layer. They are frozen dataclasses, so that Keras neither
    tracks nor saves the weights that they refer to. A layer makes them for
    each call; before it is built, their weights are `None`.
    """

    @property
    def name(self) -> str:
        """What messages call the part."""
        return type(self).__name__

    def prepare(self, inputs: Tensor, context: Context) -> Tensors:
        """Computes what the part reads of queries, once for all chunks.

        Args:
            inputs: `(B, T, M)`, from which the queries were computed.
            context: `Context`.

        Returns:
            Dict of tensors `(B, T, ...)`, for `Call.queries`.
        """
        return {}

    def obstacle(self) -> str | None:
        """Says why the fused kernels cannot compute the part, if so."""
        return f"its kernels do not compute {self.name}"
