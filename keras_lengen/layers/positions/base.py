"""The contract of position samplers."""

import keras
from keras import ops


class PositionSampler(keras.layers.Layer):
    """Answers where each token of a sequence stands.

    A sampler reads the shape of its inputs and returns one number per token.
    Any sampler feeds any encoding. Subclasses implement `call`.

    Call arguments:
        inputs: Tensor of shape `(B, T, ...)` and any dtype; only its shape is
            read.
        lengths: True lengths inside the padded `T`, shape `(B,)` or a scalar.
            Positions are drawn for the true length: those of padding are
            finite and meaningless.
        reference_length: The length that an interpolating sampler scales by,
            where that is not the number of tokens.
        training: Whether the call belongs to training.

    Returns:
        int32 or float32 positions of shape `(T,)` where the whole batch shares
        one draw and one length, `(B, T)` otherwise.
    """

    draws = False
    """Whether two calls may return different positions."""

    stretches = False
    """Whether tokens stand other than one apart, so that the positions of a
    part of a sequence are not those of its start plus a number."""

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.built = True

    def call(
        self, inputs, *, lengths=None, reference_length=None, training=None
    ):
        raise NotImplementedError(
            f"{type(self).__name__} must implement `call`."
        )

    def compute_mask(self, inputs, previous_mask=None):
        return None


def token_count(inputs):
    """Number of tokens `T` of `(B, T, ...)`: an int where it is static."""
    return ops.shape(inputs)[1]
