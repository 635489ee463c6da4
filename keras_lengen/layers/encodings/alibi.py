"""Attention with linear biases."""

from collections.abc import Sequence
from typing import Any, Literal

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import Number
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    Asymmetry,
    SampledDistances,
    add_head_axis,
    find_signed_distances,
    shorten_past,
)
from keras_lengen.types import Array, Positions, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class ALiBi(BiasEncoding):
    """Penalises attention by distance, more steeply in some heads (ALiBi).

    Head `h` adds `-slope[h] * distance` to its scores, where `distance` is
    `|query_position - key_position|`. Unless attention is causal, `asymmetry`
    is subtracted from the distance of past keys. The slopes are fixed, so the
    encoding has no weights and no longest length. With `H` heads, `H` being a
    power of two, `slope[h] = 2 ** (-alibi_bias_max * (h + 1) / H)`.

    Stage: `attention_bias`, float32 `(1 or B, H, T, S)`, added to scaled
    scores.
    Positions: any numbers, with or without gaps; only differences matter.

    Args:
        asymmetry: float from `-2 ** 24` to `2 ** 24`, in positions. Amount
            subtracted from the distance of past keys, so that a bidirectional
            model can tell past from future keys; 0 treats both alike. Ignored
            in causal attention, unless the sampler does not keep the order of
            the tokens (`is_increasing`), so that visible keys may have larger
            positions.
        distances: str. `"positions"`: distances are differences of positions.
            `"sampled"`: the sampled positions are read as a table of distances
            whose index is a number of tokens, as in the code of Ruoss et al.,
            2023.
        alibi_bias_max: float above 0, at most 126. Sets the slope of the last
            head, `2 ** -alibi_bias_max`: with larger values, more heads see
            far keys.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If an argument is out of range.

    Differs from the paper: future keys are penalised too, which changes only
    bidirectional models; `asymmetry` comes from the code of Ruoss et al.,
    2023.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import ALiBi
    >>> bias = ALiBi()(ops.ones((1, 3, 8, 4)), causal=True)
    >>> bias[0, 0].numpy()[2].tolist()
    [-1.0, -0.5, -0.0]

    Reference: Press et al., 2022, section 3. https://arxiv.org/abs/2108.12409
    """

    asymmetry: float = argument(Asymmetry(example=0.0), default=0.5)
    distances: Literal["positions", "sampled"] = argument(default="positions")
    # A smaller slope than 2 ** -126 is no normal number of float32.
    alibi_bias_max: float = argument(
        Number(most=126, above=0, example=3), default=8
    )

    shift_invariant = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reads_ranks = self.distances == "sampled"

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        steps = find_signed_distances(
            query_positions, key_positions, self.distances
        )
        slopes = make_slopes(spec.heads, self.alibi_bias_max)[:, None, None]
        return self._penalize(slopes, add_head_axis(steps), spec.causal)

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        return prepared

    def bias_of_pair(
        self,
        parameters: Sequence[Tensor],
        query_position: Tensor,
        key_position: Tensor,
        *,
        causal: bool = False,
    ) -> Tensor:
        (slope,) = parameters
        return self._penalize(slope, key_position - query_position, causal)

    def make_pair_parameters(self, heads: int) -> Tensor:
        slopes = make_slopes(heads, self.alibi_bias_max)
        return ops.convert_to_tensor(slopes[:, None])

    def _penalize(self, slopes: Any, steps: Tensor, causal: bool) -> Tensor:
        asymmetry = 0.0 if causal else self.asymmetry
        return ops.multiply(-slopes, shorten_past(steps, asymmetry=asymmetry))


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedALiBi(SampledDistances, ALiBi):
    """`ALiBi` with randomized distances.

    Takes the arguments of `RandomizedPositions` and `ALiBi`. Unless
    `distances="positions"`, distances are sampled, as in the authors' code: in
    all runs of `benchmarks/results/randomized_forms.md`, sampled distances
    generalized better. `include_zero=None` stands for `True` if distances are
    sampled and for `False` otherwise.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedALiBi
    >>> RandomizedALiBi(max_position=2048)(ops.ones((2, 5, 4, 8))).shape
    TensorShape([1, 4, 5, 5])

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    """


def make_slopes(num_heads: int, alibi_bias_max: float = 8) -> Array:
    """Makes the slopes of the heads, float32 `(num_heads,)`.

    If `num_heads` is a power of two, the slopes are a geometric series, down
    to `2 ** -alibi_bias_max`. Otherwise they are the series of the next smaller
    power of two, followed by every other slope of the series of the next
    larger one.
    """
    power = 2 ** int(np.log2(num_heads))
    slopes = _make_geometric_slopes(power, alibi_bias_max)
    between = _make_geometric_slopes(2 * power, alibi_bias_max)[::2]
    slopes = np.concatenate([slopes, between[: num_heads - power]])
    return slopes.astype("float32")


def _make_geometric_slopes(num_heads: int, alibi_bias_max: float) -> Array:
    return 2.0 ** (-alibi_bias_max / num_heads * np.arange(1, num_heads + 1))
