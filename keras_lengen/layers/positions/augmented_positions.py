"""Augmented positions: shifted, jittered and scaled at random."""

import math

import keras
from keras import ops

from keras_lengen.arguments import (
    LARGEST_POSITION,
    check_boolean,
    check_number,
    check_seed,
)
from keras_lengen.layers.positions.base import PositionSampler, count_tokens


@keras.saving.register_keras_serializable(package="keras_lengen")
class AugmentedPositions(PositionSampler):
    """Shifts, jitters and scales positions at random in training (CAPE).

    Token `j` stands at `scale * (x + shift + jitter)`, with `x = j`, or, if
    normalized, `x = j - (n - 1) / 2`, which is `j` less the mean of the `n`
    true tokens. In training

    - `shift` is uniform in `-max_global_shift .. max_global_shift`, and
    - `log(scale)` in `-log(max_global_scale) .. log(max_global_scale)`, one
      draw of each per example;
    - `jitter` is uniform in `-max_local_shift .. max_local_shift`, one draw
      per token.

    In evaluation, token `j` stands at `x`. Positions may be negative. The
    augmentation is that for text by default.

    Args:
        max_global_shift: Largest shift of an example, in tokens, at least 0.
        max_local_shift: Largest shift of a token, in tokens, at least 0. Up
            to 0.5, tokens keep their order.
        max_global_scale: Largest factor, at least 1.
        normalize: Whether the mean position is 0 before augmentation.
        seed: Integer seed of the draws, or `None`.

    Raises:
        ValueError: If an argument is out of range.

    Returns:
        float32 of shape `(B, T)`.

    Differs from the paper: tokens are the unit, where speech is measured in
    seconds and images on -1 .. 1. A popular port counts `max_local_shift`
    from end to end, twice as large. Two samplers, as of an encoder and a
    decoder, draw independently.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import AugmentedPositions
    >>> sampler = AugmentedPositions(normalize=True)
    >>> sampler(ops.zeros((1, 4)), training=False).numpy().tolist()
    [[-1.5, -0.5, 0.5, 1.5]]

    Reference: Likhomanenko et al., 2021. https://arxiv.org/abs/2106.03143
    """

    draws = True
    fractional = True

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
        super().__init__(**kwargs)
        self.max_global_shift, self.max_local_shift = (
            check_number(
                name, shift, least=0, most=LARGEST_POSITION, what="in tokens"
            )
            for name, shift in (
                ("max_global_shift", max_global_shift),
                ("max_local_shift", max_local_shift),
            )
        )
        self.max_global_scale = check_number(
            "max_global_scale", max_global_scale, least=1
        )
        self.normalize = check_boolean("normalize", normalize)
        self.seed = check_seed(seed)
        self.seed_generator = keras.random.SeedGenerator(seed)

    def sample(
        self, inputs, *, lengths=None, reference_length=None, training=None
    ):
        batch_size, tokens = ops.shape(inputs)[0], count_tokens(inputs)
        positions = ops.cast(ops.arange(tokens, dtype="int32"), "float32")
        if self.normalize:
            lengths = tokens if lengths is None else lengths
            mean = (ops.cast(lengths, "float32") - 1) / 2
            positions = positions - ops.expand_dims(mean, -1)
        if not training:
            return ops.broadcast_to(positions, (batch_size, tokens))
        shift = self._draw((batch_size, 1), self.max_global_shift)
        log_scale = self._draw((batch_size, 1), math.log(self.max_global_scale))
        # Tokens first, for the same draws whatever the padding behind them.
        jitter = ops.transpose(
            self._draw((tokens, batch_size), self.max_local_shift)
        )
        return ops.exp(log_scale) * (positions + shift + jitter)

    def _draw(self, shape, limit):
        return keras.random.uniform(
            shape, -limit, limit, dtype="float32", seed=self.seed_generator
        )

    def get_config(self):
        return {
            **super().get_config(),
            "max_global_shift": self.max_global_shift,
            "max_local_shift": self.max_local_shift,
            "max_global_scale": self.max_global_scale,
            "normalize": self.normalize,
            "seed": self.seed,
        }
