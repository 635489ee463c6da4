"""Warped positions: some training sequences squeezed at their head or tail."""

import keras
from keras import ops

from keras_lengen.arguments import check_choice, check_number, check_seed
from keras_lengen.layers.positions.base import PositionSampler, count_tokens
from keras_lengen.layers.positions.interpolated_positions import (
    check_train_length,
    interpolate_positions,
)


@keras.saving.register_keras_serializable(package="keras_lengen")
class WarpedPositions(PositionSampler):
    """Trains on fractional positions, which interpolation will need.

    In training, token `j` of an example of true length `l` stands at

    - `alpha * j` in a share `head_fraction` of the examples, `alpha` drawn
      uniformly from `head_scales` for each (head warping),
    - `l * f(j / l)` in a share `tail_fraction` (tail warping),
    - `j` in all others.

    In evaluation it stands where `InterpolatedPositions(train_length=...)`
    puts it, `reference_length` included.

    Head warping alone is `tail_fraction=0`, tail warping alone
    `head_fraction=0`, each with 0.3 for the other. For language models the
    paper sets `head_scales=(1 / 6,)` and `skew="beta"`.

    Args:
        train_length: Tokens of the longest trained sequence.
        head_fraction: Probability of head warping.
        tail_fraction: Probability of tail warping; the two add up to 1 at
            most.
        head_scales: Factors `alpha`, each above 0.
        skew: The function `f`. `"sqrt"`: the square root. `"beta"`: the
            distribution function of Beta(2, 5), `1 - (1 - x)**5 * (1 + 5 x)`,
            so flat at its end that float32 does not tell apart the last few
            percent of positions of a long sequence.
        seed: Integer seed of the draws, or `None`.

    Raises:
        ValueError: If an argument is out of range.

    Returns:
        float32 of shape `(B, T)`.

    Differs from the paper: that leaves open whether `l` is the example's own
    length or the longest; here it is its own. Trained lengths are in tokens.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import WarpedPositions
    >>> sampler = WarpedPositions(
    ...     train_length=20, head_fraction=1, tail_fraction=0,
    ...     head_scales=(0.5,))
    >>> sampler(ops.zeros((1, 4)), training=True).numpy().tolist()
    [[0.0, 0.5, 1.0, 1.5]]

    Reference: position index warping (for decoders with rotary encodings; the
    title and the authors of the paper are not on record here).
    Evaluation: Chen et al., 2023, section 2.3.
    https://arxiv.org/abs/2306.15595
    """

    draws = True
    fractional = True

    def __init__(
        self,
        *,
        train_length,
        head_fraction=0.15,
        tail_fraction=0.15,
        head_scales=(0.4, 0.5, 0.6, 0.7, 0.8),
        skew="sqrt",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.train_length = check_train_length(train_length)
        self.head_fraction, self.tail_fraction = (
            check_number(name, fraction, least=0, most=1)
            for name, fraction in (
                ("head_fraction", head_fraction),
                ("tail_fraction", tail_fraction),
            )
        )
        if self.head_fraction + self.tail_fraction > 1:
            raise ValueError(
                "head_fraction and tail_fraction must add up to 1 at most; "
                f"got {head_fraction!r} and {tail_fraction!r}."
            )
        self.head_scales = _check_scales(head_scales)
        self.skew = check_choice("skew", skew, tuple(SKEWS))
        self.seed = check_seed(seed)
        self.seed_generator = keras.random.SeedGenerator(seed)

    def sample(
        self, inputs, *, lengths=None, reference_length=None, training=None
    ):
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

    def _draw(self, batch_size):
        """What chooses the warping, and the scale of heads, `(B, 1)` each."""
        share, choice = (
            keras.random.uniform(
                (batch_size, 1), dtype="float32", seed=self.seed_generator
            )
            for _ in range(2)
        )
        choice = ops.cast(choice * len(self.head_scales), "int32")
        scales = ops.convert_to_tensor(self.head_scales, "float32")
        return share, ops.take(scales, choice)

    def _warp_tail(self, indices, lengths):
        lengths = ops.expand_dims(ops.maximum(lengths, 1.0), -1)
        # Padding stands at the end.
        return lengths * SKEWS[self.skew](ops.minimum(indices / lengths, 1.0))

    def get_config(self):
        return {
            **super().get_config(),
            "train_length": self.train_length,
            "head_fraction": self.head_fraction,
            "tail_fraction": self.tail_fraction,
            "head_scales": self.head_scales,
            "skew": self.skew,
            "seed": self.seed,
        }


def _check_scales(head_scales):
    if not isinstance(head_scales, list | tuple) or not head_scales:
        raise ValueError(
            "head_scales must be a tuple of one or more numbers above 0; "
            f"got {head_scales!r}."
        )
    return tuple(
        check_number("head_scales", scale, above=0, what="each of them")
        for scale in head_scales
    )


def compute_beta_distribution(x):
    """Distribution function of Beta(2, 5) on 0 .. 1."""
    rest = 1 - x
    return 1 - ops.square(ops.square(rest)) * rest * (1 + 5 * x)


SKEWS = {"sqrt": ops.sqrt, "beta": compute_beta_distribution}
"""What tail warping makes of the relative position in a sequence."""
