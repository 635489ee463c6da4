"""Attention with linear biases."""

import keras
import numpy as np
from keras import ops

from keras_lengen.arguments import check_number
from keras_lengen.layers.encodings.base import BiasEncoding
from keras_lengen.layers.encodings.distances import (
    SampledDistances,
    check_distances,
    find_asymmetric_distances,
)


@keras.saving.register_keras_serializable(package="keras_lengen")
class ALiBi(BiasEncoding):
    """Penalises attention by distance, more steeply in some heads (ALiBi).

    Head `h` adds `-slope[h] * distance` to its scores, `distance` being
    `|query_position - key_position|`, less `asymmetry` for past keys unless
    causal. Slopes are fixed: no weights, no longest length.

    Stage: `attention_bias`, float32 `(1 or B, H, T, S)`, on scores already
    scaled.
    Positions: any numbers, gaps allowed; only differences matter.

    Args:
        asymmetry: How much nearer past keys are than future ones, so that a
            bidirectional model tells left from right; 0 is symmetric. Ignored
            when causal.
        distances: `"positions"`: differences of positions. `"sampled"`: the
            positions are a table of distances by number of tokens, as in the
            code of Ruoss et al., 2023.
        sampler: `PositionSampler`, `None` for 0, 1, 2, ...

    Raises:
        ValueError: If an argument is out of range.

    Differs from the paper: future keys are penalised too, which only a
    bidirectional model sees; the asymmetry is that of the code of Ruoss et
    al., 2023.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import ALiBi
    >>> bias = ALiBi()(ops.ones((1, 3, 8, 4)), causal=True)
    >>> bias[0, 0].numpy()[2].tolist()
    [-1.0, -0.5, -0.0]

    Reference: Press et al., 2022, section 3. https://arxiv.org/abs/2108.12409
    """

    def __init__(self, *, asymmetry=0.5, distances="positions", **kwargs):
        super().__init__(**kwargs)
        self.asymmetry = check_number("asymmetry", asymmetry)
        self.distances = check_distances(distances)
        self.reads_ranks = self.distances == "sampled"

    def attention_bias(
        self, query, key, query_positions, key_positions, *, causal=False
    ):
        penalties = find_asymmetric_distances(
            query_positions,
            key_positions,
            asymmetry=self.asymmetry,
            causal=causal,
            distances=self.distances,
        )
        slopes = make_slopes(query.shape[2])[:, None, None]
        return ops.multiply(-slopes, penalties)

    def get_config(self):
        return {
            **super().get_config(),
            "asymmetry": self.asymmetry,
            "distances": self.distances,
        }


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedALiBi(SampledDistances, ALiBi):
    """`ALiBi` over randomized distances.

    Takes the arguments of `RandomizedPositions` and `ALiBi`. Distances are
    sampled, as in the authors' code, unless `distances="positions"`: in all
    runs of `benchmarks/results/randomized_forms.md` they generalized better.
    Draws then have position 0, unless `include_zero` says otherwise.

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    """


def make_slopes(num_heads):
    """Slopes of the heads, float32 `(num_heads,)`.

    A geometric series for a power of two; otherwise that of the next smaller
    power, followed by every other slope of the next larger one.
    """
    power = 2 ** int(np.log2(num_heads))
    slopes = _make_geometric_slopes(power)
    between = _make_geometric_slopes(2 * power)[::2]
    slopes = np.concatenate([slopes, between[: num_heads - power]])
    return slopes.astype("float32")


def _make_geometric_slopes(num_heads):
    return 2.0 ** (-8.0 / num_heads * np.arange(1, num_heads + 1))
