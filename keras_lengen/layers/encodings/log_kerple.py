"""KERPLE with the logarithm of the distance."""

import keras
from keras import ops

from keras_lengen.layers.encodings.kerple import KERPLE
from keras_lengen.layers.encodings.randomized import Randomized
from keras_lengen.types import Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class LogKERPLE(KERPLE):
    """Penalises attention by a learned logarithm of the distance (KERPLE).

    Head `h` adds `-p[h] * log(1 + a[h] * distance)` to its scores, where
    `distance` is `|query_position - key_position|`. Unless attention is
    causal, `asymmetry` is subtracted from the distance of past keys. Both
    `a >= 0.01` and `p >= 0.01` are learned and clipped to these ranges after
    every training step.

    Stage: `attention_bias`, float32 `(1 or B, H, T, S)`, added to scaled
    scores. Weights: `a (H,)` and `p (H,)`, by default one pair for all layers.
    Positions: any numbers, with or without gaps; only differences matter.

    Args:
        asymmetry: float from `-2 ** 24` to `2 ** 24`, in positions. Amount
            subtracted from the distance of past keys, so that a bidirectional
            model can tell past from future keys; distances below 0 are set to
            0. Ignored in causal attention, unless the sampler does not keep
            the order of the tokens (`is_increasing`), so that visible keys may
            have larger positions.
        share_layers: bool, whether all layers share the weights, as in the
            authors' code.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If an argument is out of range.

    Differs from the paper: future keys are penalised too, which changes only
    bidirectional models, and the paper has no `asymmetry`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import LogKERPLE
    >>> encoding = LogKERPLE()
    >>> encoding.build((None, None, 1, 4))
    >>> _ = encoding.a.assign([1.0]), encoding.p.assign([2.0])
    >>> bias = encoding(ops.ones((1, 3, 1, 4)))
    >>> bias[0, 0, 2].numpy().round(3).tolist()
    [-2.19..., -1.38..., -0.0]

    Reference: Chi et al., 2022, section 4. https://arxiv.org/abs/2205.09921
    """

    def penalize(self, distances: Tensor, a: Tensor, p: Tensor) -> Tensor:
        # ONNX has no log1p. What is lost is below 1e-7, in a score.
        return -p * ops.log(1 + a * distances)


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedLogKERPLE(Randomized, LogKERPLE):
    """`LogKERPLE` with randomized positions.

    Takes the arguments of `RandomizedPositions` and `LogKERPLE`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedLogKERPLE
    >>> RandomizedLogKERPLE(max_position=2048)(ops.ones((2, 5, 4, 8))).shape
    TensorShape([1, 4, 5, 5])

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    """
