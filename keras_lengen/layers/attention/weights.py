"""Rules by which scores of attention become weights."""

import dataclasses
import math

from keras import ops

from keras_lengen.layers.attention.entmax import entmax
from keras_lengen.layers.attention.parts import Part
from keras_lengen.layers.attention.visibility import Visibility
from keras_lengen.types import Tensor


class WeightRule(Part):
    """Turns the scores of a call into weights."""

    @property
    def name(self) -> str:
        return f"the weights of {type(self).__name__}"

    @property
    def is_plain(self) -> bool:
        """Whether the weights are a softmax of the visible scores only."""
        return False

    def __call__(self, scores: Tensor, visible: Visibility) -> Tensor:
        """Computes the weights.

        Args:
            scores: float32 `(B, H, T, S)`, of hidden keys too.
            visible: `Visibility` of the queries and keys.

        Returns:
            float32 `(B, H, T, S)`.
        """
        raise NotImplementedError

    def finish(self, output: Tensor, totals: Tensor) -> Tensor:
        """Makes the output of a kernel's softmax that of this rule.

        Args:
            output: Weighted sums of the values `(B, T, H, value_dim)`.
            totals: Logarithms of the sums of the exponentials of the scores,
                float32 `(B, H, T)`.
        """
        return output


@dataclasses.dataclass(frozen=True, eq=False)
class Softmax(WeightRule):
    """A softmax, over the score of a learned sink too if there is one.

    Attributes:
        sinks: Score of the sink of each head, `(H, 1, 1)`, or `None`.
    """

    sinks: Tensor | None = None

    @property
    def is_plain(self) -> bool:
        return self.sinks is None

    def __call__(self, scores: Tensor, visible: Visibility) -> Tensor:
        scores = hide_scores(scores, visible.mask())
        if self.sinks is None:
            # Keras warns about a softmax over an axis of size one.
            if scores.shape[-1] == 1:
                return ops.ones_like(scores)
            return ops.softmax(scores, axis=-1)
        sinks = ops.cast(self.sinks, "float32")
        # With `initial`, tensors may also be empty.
        largest = ops.max(scores, axis=-1, keepdims=True, initial=-math.inf)
        largest = ops.stop_gradient(ops.maximum(largest, sinks))
        powers = ops.exp(scores - largest)
        total = ops.sum(powers, axis=-1, keepdims=True)
        return powers / (total + ops.exp(sinks - largest))

    def obstacle(self) -> str | None:
        return None

    def finish(self, output: Tensor, totals: Tensor) -> Tensor:
        if self.sinks is None:
            return output
        sinks = ops.cast(self.sinks, "float32")[:, 0]
        share = ops.transpose(ops.sigmoid(totals - sinks), (0, 2, 1))
        scaled = ops.cast(output, "float32") * ops.expand_dims(share, -1)
        return ops.cast(scaled, output.dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class Entmax(WeightRule):
    """Sparse weights, with a learned sink if there is one; see `Softmax`."""

    sinks: Tensor | None = None

    def __call__(self, scores: Tensor, visible: Visibility) -> Tensor:
        scores = hide_scores(scores, visible.mask())
        if self.sinks is None:
            return entmax(scores)
        sinks = ops.cast(self.sinks, "float32")
        sinks = ops.broadcast_to(sinks, ops.shape(scores[..., :1]))
        return entmax(ops.concatenate([scores, sinks], axis=-1))[..., :-1]


def hide_scores(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Gives scores that a mask hides a value below any bias.

    Args:
        scores: float32 `(B, H, T, S)`.
        mask: Boolean tensor that broadcasts to `(B, H, T, S)`, or `None`.
    """
    if mask is None:
        return scores
    # So a query with no visible keys yields finite values instead of NaN.
    return ops.where(mask, scores, -1e30)
