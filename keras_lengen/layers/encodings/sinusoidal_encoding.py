"""Sines and cosines of the position, added to the embeddings."""

from typing import Literal

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import Number
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.absolute import AbsoluteEncoding
from keras_lengen.layers.encodings.angles import compute_angles
from keras_lengen.layers.encodings.randomized import Randomized
from keras_lengen.types import Array, InputShape, Positions, Tensor


class MaxWavelength(Number):
    """Base of a geometric series of frequencies."""

    def __init__(self) -> None:
        super().__init__(most=2**40, above=1, example=100)


@keras.saving.register_keras_serializable(package="keras_lengen")
class SinusoidalEncoding(AbsoluteEncoding):
    """Adds sines and cosines of the position to the embeddings.

    At position `p`, feature pair `m` of the `M / 2` pairs is `sin(p * w)` and
    `cos(p * w)` with `w = max_wavelength ** (-2 * m / M)`.

    Stage: `add_to_embeddings`, `(B, T, M)` to the same, `M` even. No weights.
    Positions: any numbers, without an upper limit.

    Args:
        max_wavelength: float above 1, at most `2 ** 40`. Base of the geometric
            series of frequencies.
        layout: str. `"concatenated"`: all sines, then all cosines.
            `"interleaved"`: sine and cosine of each frequency side by side.
            The two layouts differ by a permutation of the features.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If `M` is odd or an argument is out of range.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import SinusoidalEncoding
    >>> encoded = SinusoidalEncoding()(ops.zeros((1, 2, 4)))
    >>> encoded.numpy().round(3)[0].tolist()
    [[0.0, 0.0, 1.0, 1.0], [0.8410000205039978, 0.009999999776482582, ...

    Reference: Vaswani et al., 2017, section 3.5 (with frequencies counted
    from 0). https://arxiv.org/abs/1706.03762
    """

    max_wavelength: float = argument(MaxWavelength(), default=10000)
    layout: Literal["concatenated", "interleaved"] = argument(
        default="concatenated"
    )

    def build(self, query_shape: InputShape) -> None:
        super().build(query_shape)
        check_even(query_shape[-1], "the width of the embeddings")

    def add_to_embeddings(
        self, embeddings: Tensor, positions: Positions
    ) -> Tensor:
        encoding = make_sinusoid(
            positions,
            embeddings.shape[-1],
            max_wavelength=self.max_wavelength,
            layout=self.layout,
        )
        return embeddings + ops.cast(encoding, embeddings.dtype)


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedSinusoidalEncoding(Randomized, SinusoidalEncoding):
    """`SinusoidalEncoding` with randomized positions.

    Takes the arguments of `RandomizedPositions` and `SinusoidalEncoding`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedSinusoidalEncoding
    >>> encoding = RandomizedSinusoidalEncoding(max_position=2048)
    >>> encoding(ops.ones((2, 5, 8))).shape
    TensorShape([2, 5, 8])

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    """


def make_sinusoid(
    positions: Tensor,
    width: int,
    *,
    max_wavelength: float,
    layout: str = "concatenated",
) -> Tensor:
    """Computes sines and cosines of positions, float32 `(..., width)`."""
    angles = compute_angles(positions, frequencies(width, max_wavelength))
    sines, cosines = ops.sin(angles), ops.cos(angles)
    if layout == "concatenated":
        return ops.concatenate([sines, cosines], axis=-1)
    return interleave(sines, cosines)


def interleave(first: Tensor, second: Tensor) -> Tensor:
    """Interleaves the features of two tensors `(..., W)` to `(..., 2 W)`."""
    pairs = ops.stack([first, second], axis=-1)
    return ops.reshape(pairs, (*ops.shape(first)[:-1], 2 * first.shape[-1]))


def frequencies(width: int, max_wavelength: float) -> Array:
    """Computes angular frequencies, highest first, float64 `(width / 2,)`.

    The unit is radians per position.
    """
    exponents = np.arange(0, width, 2) / width
    rates: Array = float(max_wavelength) ** -exponents
    return rates


def check_even(width: int, name: str) -> None:
    """Raises `ValueError` if a width is odd.

    Args:
        width: int, number of features.
        name: str, what the width is, for the error message.
    """
    if width % 2:
        raise ValueError(
            f"{name} is {width}: choose an even number, because sines and "
            "cosines come in pairs."
        )
