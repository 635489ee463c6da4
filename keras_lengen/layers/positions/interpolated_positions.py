"""Interpolated positions: long sequences in the range of the trained ones."""

import keras
from keras import ops

from keras_lengen.arguments import check_integer, check_number
from keras_lengen.layers.positions.base import PositionSampler, count_tokens


@keras.saving.register_keras_serializable(package="keras_lengen")
class InterpolatedPositions(PositionSampler):
    """Compresses the positions of long sequences into the trained range.

    Token `i` of a sequence of true length `n` stands at
    `i * min(1, train_length / n)`: the positions of sequences up to
    `train_length` are 0, 1, 2, ..., those of longer ones fractions below
    `train_length`. With a fixed factor they are `i / scaling_factor`, whatever
    the length.

    Training and evaluation are alike. By length, training on sequences up to
    `train_length` is ordinary; a fixed factor is for the fine-tuning of a
    trained model, and for its use afterwards.

    The length is, in this order, `reference_length` where it is given (the
    items that a prompt lists, or the prompt and what will be generated, held
    fixed while tokens are generated one at a time), `lengths`, or `T`.

    Args:
        train_length: Tokens of the longest trained sequence, counted as the
            length is. Without effect beside a `scaling_factor`.
        scaling_factor: Fixed factor, above 0, or `None` to go by length.

    Raises:
        ValueError: If an argument is out of range.

    Returns:
        float32 of shape `(T,)`, or `(B, T)` if the length has shape `(B,)`.

    Differs from the paper: it knows the fixed factor alone.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import InterpolatedPositions
    >>> sampler = InterpolatedPositions(train_length=2)
    >>> sampler(ops.zeros((1, 4))).numpy().tolist()
    [0.0, 0.5, 1.0, 1.5]

    Reference: Chen et al., 2023, section 2.3.
    https://arxiv.org/abs/2306.15595
    """

    stretches = True
    fractional = True

    def __init__(self, *, train_length, scaling_factor=None, **kwargs):
        super().__init__(**kwargs)
        self.train_length = check_train_length(train_length)
        self.scaling_factor = check_number(
            "scaling_factor", scaling_factor, above=0, optional=True
        )

    def sample(
        self, inputs, *, lengths=None, reference_length=None, training=None
    ):
        if self.scaling_factor is None:
            return interpolate_positions(
                inputs,
                self.train_length,
                lengths=lengths,
                reference_length=reference_length,
            )
        indices = ops.arange(count_tokens(inputs), dtype="int32")
        return ops.cast(indices, "float32") * (1 / self.scaling_factor)

    def get_config(self):
        return {
            **super().get_config(),
            "train_length": self.train_length,
            "scaling_factor": self.scaling_factor,
        }


def interpolate_positions(inputs, train_length, *, lengths, reference_length):
    """Positions `i * min(1, train_length / n)`, float32 `(T,)` or `(B, T)`."""
    tokens = count_tokens(inputs)
    if reference_length is None:
        reference_length = tokens if lengths is None else lengths
    length = ops.cast(reference_length, "float32")
    # Not a minimum, which may hide that a length is NaN.
    ratio = ops.where(length <= train_length, 1.0, train_length / length)
    indices = ops.cast(ops.arange(tokens, dtype="int32"), "float32")
    return indices * ops.expand_dims(ratio, -1)


def check_train_length(train_length):
    """Returns a valid length of trained sequences, or raises `ValueError`."""
    return check_integer(
        "train_length",
        train_length,
        what="the tokens of the longest trained sequence",
    )
