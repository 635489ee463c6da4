"""Base class of the two forms of KERPLE."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    Asymmetry,
    find_asymmetric_distances,
    shorten_past,
)
from keras_lengen.types import InputShape, Positions, Shape, Tensor


class KERPLE(BiasEncoding):
    """Bias that decreases with distance, with two learned numbers per head.

    Subclasses implement `bias_at`.
    """

    highest_p: float | None = None
    """Largest value allowed for `p`, or `None` for no limit."""

    asymmetry: float = argument(Asymmetry(example=0.5), default=0)
    share_layers: bool = argument(default=True)

    shift_invariant = True

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        heads = query_shape[-2]
        self.a = self._add_weight("a", heads, 1.0, Clip(lowest=0.01))
        self.p = self._add_weight(
            "p", heads, 2.0, Clip(lowest=0.01, highest=self.highest_p)
        )

    def _add_weight(
        self, name: str, heads: int, top: float, constraint: "Clip"
    ) -> Tensor:
        def initialize(shape: Shape, dtype: str) -> Tensor:
            uniform = keras.initializers.RandomUniform(0.0, top)
            return constraint(uniform(shape, dtype))

        return self.add_weight(
            name=name,
            shape=(heads,),
            initializer=initialize,
            constraint=constraint,
            autocast=False,
        )

    def penalize(self, distances: Tensor, a: Tensor, p: Tensor) -> Tensor:
        """Computes the bias of the distances.

        Args:
            distances: float32 of any shape; none negative, NaN where a
                position is invalid.
            a: The weight `a`, float32, which broadcasts against the distances:
                `(H, 1, 1)` for all heads, `()` for one.
            p: The weight `p`, float32 of the same shape.

        Returns:
            float32 of the shape that the arguments broadcast to; NaN where a
            distance is.
        """
        raise NotImplementedError

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        distances = find_asymmetric_distances(
            query_positions,
            key_positions,
            asymmetry=self.asymmetry,
            causal=spec.causal,
        )
        return ops.maximum(distances, 0)

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        return self.penalize(
            prepared,
            *(
                ops.reshape(ops.cast(weight, "float32"), (-1, 1, 1))
                for weight in (self.a, self.p)
            ),
        )

    def bias_of_pair(
        self,
        parameters: Sequence[Tensor],
        query_position: Tensor,
        key_position: Tensor,
        *,
        causal: bool = False,
    ) -> Tensor:
        distances = shorten_past(
            key_position - query_position,
            asymmetry=0.0 if causal else self.asymmetry,
        )
        return self.penalize(ops.maximum(distances, 0), *parameters)

    def make_pair_parameters(self, heads: int) -> Tensor:
        weights = [ops.cast(each, "float32") for each in (self.a, self.p)]
        return ops.stack(weights, axis=-1)


@keras.saving.register_keras_serializable(package="keras_lengen")
class Clip(keras.constraints.Constraint):
    """Constraint that clips a weight to a range after every training step.

    Unlike a clipping in the forward pass, this never blocks a gradient.

    Args:
        lowest: float, smallest value allowed.
        highest: float, largest value allowed, or `None` for no limit.
    """

    def __init__(self, *, lowest: float, highest: float | None = None) -> None:
        self.lowest = lowest
        self.highest = highest

    def __call__(self, weight: Tensor) -> Tensor:
        weight = ops.maximum(weight, self.lowest)
        return (
            weight
            if self.highest is None
            else ops.minimum(weight, self.highest)
        )

    def get_config(self) -> dict[str, Any]:
        return {"lowest": self.lowest, "highest": self.highest}
