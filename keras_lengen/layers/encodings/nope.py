"""No positional encoding."""

import keras

from keras_lengen.layers.encodings.base import PositionalEncoding


@keras.saving.register_keras_serializable(package="keras_lengen")
class NoPE(PositionalEncoding):
    """Has no effect: a model without a positional encoding (NoPE).

    A causal Transformer can tell positions apart without any encoding, because
    each token sees a different number of earlier tokens. An encoder cannot.

    Stage: none; queries, keys and embeddings are returned as they are.
    Positions: any, which are ignored.

    Args:
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import NoPE
    >>> NoPE()(ops.ones((1, 3, 4))).shape
    TensorShape([1, 3, 4])

    Reference: Kazemnejad et al., 2023, section 5 (what a causal Transformer
    recovers without any encoding).
    https://arxiv.org/abs/2305.19466
    """

    shift_invariant = True
