"""KERPLE with a power of the distance."""

import keras
from keras import ops

from keras_lengen.layers.encodings.base import Randomized
from keras_lengen.layers.encodings.kerple import KERPLE


@keras.saving.register_keras_serializable(package="keras_lengen")
class PowerKERPLE(KERPLE):
    """Penalises attention by a learned power of the distance (KERPLE).

    Head `h` adds `-a[h] * distance ** p[h]` to its scores, `distance` being
    `|query_position - key_position|`, less `asymmetry` for past keys unless
    causal. Both `a >= 0.01` and `p` from 0.01 to 2 are learned: what leaves
    that range is brought back after every step of training.

    Stage: `attention_bias`, float32 `(1 or B, H, T, S)`, on scores already
    scaled. Weights: `a (H,)` and `p (H,)`, one pair for all layers.
    Positions: any numbers, gaps allowed; only differences matter.

    Args:
        asymmetry: How much nearer past keys are than future ones, so that a
            bidirectional model tells left from right; no distance falls below
            0. Ignored when causal.
        share_layers: Whether all layers share the weights, as in the authors'
            code.
        sampler: `PositionSampler`, `None` for 0, 1, 2, ...

    Differs from the paper: future keys are penalised too, which only a
    bidirectional model sees, and `asymmetry` is not part of it.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import PowerKERPLE
    >>> encoding = PowerKERPLE()
    >>> encoding.build((None, None, 1, 4))
    >>> _ = encoding.a.assign([0.5]), encoding.p.assign([2.0])
    >>> bias = encoding(ops.ones((1, 3, 1, 4)))
    >>> bias[0, 0, 2].numpy().tolist()
    [-2.0, -0.5, -0.0]

    Reference: Chi et al., 2022, section 4. https://arxiv.org/abs/2205.09921
    """

    highest_p = 2.0

    def bias_at(self, distances, a, p):
        # Where the distance is 0 the gradient of p would be 0 * log(0).
        together = distances <= 0
        powers = ops.power(ops.where(together, 1, distances), p)
        return -a * ops.where(together, 0, powers)


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedPowerKERPLE(Randomized, PowerKERPLE):
    """`PowerKERPLE` at randomized positions.

    Takes the arguments of `RandomizedPositions` and `PowerKERPLE`.

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    """
