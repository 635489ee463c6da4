"""Warped positions: fractional positions in some training sequences."""

from collections.abc import Callable, Sequence
from typing import Literal

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Number,
    Tuple,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.positions.base import (
    RandomSampler,
    Seeded,
    count_tokens,
)
from keras_lengen.layers.positions.interpolated_positions import (
    TrainLength,
    interpolate_positions,
)
from keras_lengen.types import Size, Tensor


class WarpedArguments(Seeded):
    """Arguments of `WarpedPositions`, and of encodings that contain it."""

    train_length: int = argument(TrainLength())
    head_fraction: float = argument(Number(0, 1, example=0.1), default=0.15)
    tail_fraction: float = argument(Number(0, 1, example=0.0), default=0.15)
    head_scales: Sequence[float] = argument(
        Tuple(Number(most=LARGEST_POSITION, above=0), example=(0.3, 0.9)),
        default=(0.4, 0.5, 0.6, 0.7, 0.8),
    )
    skew: Literal["sqrt", "beta"] = argument(default="sqrt")


@keras.saving.register_keras_serializable(package="keras_lengen")
class WarpedPositions(WarpedArguments, RandomSampler):
    """Trains a model on fractional positions and interpolates in evaluation.

    In training, token `j` of an example of true length `l` has position

    - `alpha * j` with probability `head_fraction`, where `alpha` is drawn
      uniformly from `head_scales` for each example (head warping),
    - `l * f(j / l)` with probability `tail_fraction` (tail warping), or
    - `j` otherwise.

    In evaluation, positions are those of
    `InterpolatedPositions(train_length=...)`, which also reads
    `reference_length`.

    For head warping only, set `head_fraction=0.3, tail_fraction=0`; for tail
    warping only, set `head_fraction=0, tail_fraction=0.3`. For language models,
    the paper uses `head_scales=(1 / 6,)` and `skew="beta"`.

    Args:
        train_length: int, from 1 to `2 ** 24`. Length of the longest trained
            sequence in tokens.
        head_fraction: float from 0 to 1, probability of head warping.
        tail_fraction: float from 0 to 1, probability of tail warping. The two
            probabilities add up to at most 1.
        head_scales: tuple of floats above 0, at most `2 ** 24`, the factors
            `alpha`.
        skew: str, the function `f`. `"sqrt"`: the square root. `"beta"`: the
            distribution function of Beta(2, 5), `1 - (1 - x)**5 * (1 + 5 x)`.
            It is so flat near 1 that float32 gives equal positions to the last
            few percent of the tokens of a long sequence.
        seed: int from 0 to `2 ** 31 - 1`, seed of the draws, or `None`.

    Raises:
        ValueError: If an argument is out of range.

    Returns:
        float32 positions `(B, T)`.

    Differs from the paper: the paper does not say whether `l` is the length of
    the example or the longest length; here it is the length of the example.
    Trained lengths are in tokens.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import WarpedPositions
    >>> sampler = WarpedPositions(
    ...     train_length=64, head_fraction=0.4, tail_fraction=0.4)
    >>> sampler(ops.zeros((1, 128)))[0, :4].numpy().tolist()
    [0.0, 0.5, 1.0, 1.5]
    >>> sampler = WarpedPositions(
    ...     train_length=64, head_fraction=1, tail_fraction=0,
    ...     head_scales=(0.5,))
    >>> sampler(ops.zeros((1, 4)), training=True).numpy().tolist()
    [[0.0, 0.5, 1.0, 1.5]]

    Reference: Improving Length Generalization via Position Index Warping (for
    decoders with rotary encodings).
    Evaluation: Chen et al., 2023, section 2.3.
    https://arxiv.org/abs/2306.15595
    """

    is_random = True
    fractional = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_fraction + self.tail_fraction > 1:
            raise ValueError(
                "head_fraction and tail_fraction must add up to 1 at most; "
                f"got {self.head_fraction!r} and {self.tail_fraction!r}."
            )

    def sample(
        self,
        inputs: Tensor,
        *,
        lengths: Tensor | None = None,
        reference_length: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        batch_size, tokens = ops.shape(inputs)[0], count_tokens(inputs)
        if not training:
            positions = interpolate_positions(
                inputs,
                self.train_length,
                lengths=lengths,
                reference_length=reference_length,
            )
            return ops.broadcast_to(positions, (batch_size, tokens))
        lengths = tokens if lengths is None else lengths
        indices = ops.cast(ops.arange(tokens, dtype="int32"), "float32")
        share, scale = self._draw(batch_size)
        positions = ops.where(
            share < self.head_fraction + self.tail_fraction,
            self._warp_tail(indices, ops.cast(lengths, "float32")),
            indices,
        )
        return ops.where(share < self.head_fraction, scale * indices, positions)

    def _draw(self, batch_size: Size) -> tuple[Tensor, Tensor]:
        """Draws a number that chooses the warping, and a scale for heads.

        Returns:
            float32 `(B, 1)` from 0 to 1, and float32 `(B, 1)`.
        """
        share, choice = (
            keras.random.uniform(
                (batch_size, 1), dtype="float32", seed=self.seed_generator
            )
            for _ in range(2)
        )
        choice = ops.cast(choice * len(self.head_scales), "int32")
        scales = ops.convert_to_tensor(self.head_scales, "float32")
        return share, ops.take(scales, choice)

    def _warp_tail(self, indices: Tensor, lengths: Tensor) -> Tensor:
        lengths = ops.expand_dims(ops.maximum(lengths, 1.0), -1)
        # The indices of padding exceed the lengths.
        return lengths * SKEWS[self.skew](ops.minimum(indices / lengths, 1.0))


def compute_beta_distribution(x: Tensor) -> Tensor:
    """Computes the distribution function of Beta(2, 5) at `x` from 0 to 1."""
    rest = 1 - x
    return 1 - ops.square(ops.square(rest)) * rest * (1 + 5 * x)


SKEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "sqrt": ops.sqrt,
    "beta": compute_beta_distribution,
}
"""Functions `f` of tail warping; they map relative positions to such."""
