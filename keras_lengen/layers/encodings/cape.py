"""Sines and cosines of continuously augmented positions."""

import keras

from keras_lengen.layers.encodings.base import Preset
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    SinusoidalEncoding,
)
from keras_lengen.layers.positions.augmented_positions import (
    AugmentedPositions,
)


@keras.saving.register_keras_serializable(package="keras_lengen")
class CAPE(Preset, SinusoidalEncoding):
    """`SinusoidalEncoding` at `AugmentedPositions`.

    Takes the arguments of both; the augmentation is that for text by default.
    Frequencies are the paper's, and so are features with
    `layout="interleaved"`, of which the default is a permutation. The paper
    multiplies the embeddings by `sqrt(M)`, which is left to the model, as
    `TransformerEncoder` does.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import CAPE
    >>> CAPE(max_global_shift=10)(ops.zeros((2, 5, 8)), training=True).shape
    TensorShape([2, 5, 8])

    Reference: Likhomanenko et al., 2021. https://arxiv.org/abs/2106.03143
    """

    sampler_class = AugmentedPositions

    def __init__(
        self,
        *,
        max_global_shift=5,
        max_local_shift=0.5,
        max_global_scale=1.03,
        normalize=False,
        seed=None,
        **kwargs,
    ):
        super().__init__(
            max_global_shift=max_global_shift,
            max_local_shift=max_local_shift,
            max_global_scale=max_global_scale,
            normalize=normalize,
            seed=seed,
            **kwargs,
        )
