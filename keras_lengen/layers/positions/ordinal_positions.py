"""Positions 0, 1, 2, ..."""

import keras
from keras import ops

from keras_lengen.layers.positions.base import PositionSampler, count_tokens
from keras_lengen.types import Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class OrdinalPositions(PositionSampler):
    """Numbers the tokens 0, 1, 2, ...

    These are the positions of an ordinary Transformer, and encodings use them
    by default.

    Returns:
        int32 positions `(T,)`, which do not depend on the lengths.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import OrdinalPositions
    >>> OrdinalPositions()(ops.zeros((2, 4))).numpy().tolist()
    [0, 1, 2, 3]

    Reference: Vaswani et al., 2017, section 3.5.
    https://arxiv.org/abs/1706.03762
    """

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        return ops.arange(count_tokens(inputs), dtype="int32")
