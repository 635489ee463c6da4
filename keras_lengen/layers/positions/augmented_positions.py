"""Augmented positions: shifted, jittered and scaled at random."""

import math

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Number,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.positions.base import (
    RandomSampler,
    Seeded,
    count_tokens,
)
from keras_lengen.types import Size, Tensor


class AugmentedArguments(Seeded):
    """Arguments of `AugmentedPositions`, and of encodings that contain it."""

    max_global_shift: float = argument(
        Number(0, LARGEST_POSITION, example=9, what="in tokens"), default=5
    )
    max_local_shift: float = argument(
        Number(0, LARGEST_POSITION, example=0.25, what="in tokens"), default=0.5
    )
    max_global_scale: float = argument(
        Number(1, LARGEST_POSITION, example=1.2), default=1.03
    )
    normalize: bool = argument(default=False)


@keras.saving.register_keras_serializable(package="keras_lengen")
class AugmentedPositions(AugmentedArguments, RandomSampler):
    """Shifts, jitters and scales positions at random in training (CAPE).

    In training, token `j` has position `scale * (x + shift + jitter)`. Here
    `x = j` or, with `normalize`, `x = j - (n - 1) / 2`: `j` minus the mean
    index of the `n` true tokens. The random numbers are uniform:

    - `shift` in `-max_global_shift .. max_global_shift`, one per example;
    - `log(scale)` in `-log(max_global_scale) .. log(max_global_scale)`, one
      per example;
    - `jitter` in `-max_local_shift .. max_local_shift`, one per token.

    In evaluation, token `j` has position `x`. Positions may be negative. The
    default arguments are the paper's for text.

    Args:
        max_global_shift: float from 0 to `2 ** 24`, in tokens. Largest shift
            of an example.
        max_local_shift: float from 0 to `2 ** 24`, in tokens. Largest shift of
            a single token; tokens keep their order up to 0.5.
        max_global_scale: float from 1 to `2 ** 24`. Largest factor of an
            example.
        normalize: bool, whether the mean position before the augmentation is
            0.
        seed: int from 0 to `2 ** 31 - 1`, seed of the draws, or `None`.

    Raises:
        ValueError: If an argument is out of range.

    Returns:
        float32 positions `(B, T)`.

    Differs from the paper: the unit of positions is one token; in the paper,
    positions in speech are seconds, and those in images are from -1 to 1. A
    popular port defines `max_local_shift` as the width of the whole interval,
    which is twice as large. Two samplers, such as those of an encoder and a
    decoder, draw independently.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import AugmentedPositions
    >>> AugmentedPositions(max_global_shift=20)(ops.zeros((1, 4))).shape
    TensorShape([1, 4])
    >>> sampler = AugmentedPositions(normalize=True)
    >>> sampler(ops.zeros((1, 4)), training=False).numpy().tolist()
    [[-1.5, -0.5, 0.5, 1.5]]

    Reference: Likhomanenko et al., 2021. https://arxiv.org/abs/2106.03143
    """

    is_random = True
    fractional = True
    negative = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.is_increasing = self.max_local_shift <= 0.5

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
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
        # Drawn with tokens as the first axis, so that the draws do not depend
        # on the amount of padding.
        jitter = ops.transpose(
            self._draw((tokens, batch_size), self.max_local_shift)
        )
        return ops.exp(log_scale) * (positions + shift + jitter)

    def _draw(self, shape: tuple[Size, ...], limit: float) -> Tensor:
        return keras.random.uniform(
            shape, -limit, limit, dtype="float32", seed=self.seed_generator
        )
