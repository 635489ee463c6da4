"""Rotary position embedding."""

import math
from typing import Any, Literal

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import Number
from keras_lengen.checks.constructors import argument
from keras_lengen.layers.encodings.angles import compute_angles
from keras_lengen.layers.encodings.base import AttentionSpec
from keras_lengen.layers.encodings.randomized import Randomized
from keras_lengen.layers.encodings.rotary import RotaryEncoding
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    MaxWavelength,
    check_even,
    frequencies,
)
from keras_lengen.types import Array, InputShape, Positions, Size, Tensor

WIDEST_SWAP = 512
"""Largest width of all heads whose pairs are swapped, on JAX, by a product with
a matrix."""

WIDEST_HEAD = 64
"""Largest width of a head whose pairs are swapped so on other backends."""


@keras.saving.register_keras_serializable(package="keras_lengen")
class RoPE(RotaryEncoding):
    """Rotates queries and keys by angles that grow with the position (RoPE).

    In every head, feature pair `m` of the first `R` features is rotated by the
    angle `p * max_wavelength ** (-2 * m / R)` at position `p`. `R` is
    `rotary_fraction * D`, rounded to an integer. The inner product of a rotated
    query and a rotated key then depends only on the difference of their
    positions. Only the fastest `fastest_fraction` of the pairs rotate (p-RoPE);
    the slowest ones, whose angles in a long context do not occur in training,
    are not rotated.

    Stage: `rotate`, `(B, T, H, D)` to the same. No weights.
    Positions: any numbers; only differences matter.

    Args:
        max_wavelength: float above 1, at most `2 ** 40`. Base of the geometric
            series of frequencies.
        rotary_fraction: float above 0 and at most 1. Fraction of each head's
            features that are rotated.
        fastest_fraction: float from 0 to 1. Fraction of the pairs that rotate,
            rounded down to a number of pairs. The slowest pairs are not
            rotated, and the angles of the others do not change.
        layout: str. `"interleaved"`: features `2m` and `2m + 1` form a pair.
            `"halves"`: features `m` and `m + R / 2` form a pair, as in
            `keras_hub.layers.RotaryEmbedding`. The two layouts differ by a
            permutation of the features.
        sampler: `PositionSampler`, or `None` for positions 0, 1, 2, ...

    Raises:
        ValueError: If the rotated width is odd or zero, or an argument is out
            of range.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RoPE
    >>> query, key = RoPE()(ops.ones((2, 5, 4, 8)), ops.ones((2, 5, 4, 8)))
    >>> query.shape
    TensorShape([2, 5, 4, 8])

    Reference: Su et al., 2021, section 3.2.2.
    https://arxiv.org/abs/2104.09864
    Fastest pairs only: Barbero et al., 2025, section 6.
    https://arxiv.org/abs/2410.06205
    """

    max_wavelength: float = argument(MaxWavelength(), default=10000)
    rotary_fraction: float = argument(
        Number(most=1, above=0, example=0.5, variant=True), default=1.0
    )
    fastest_fraction: float = argument(
        Number(0, 1, example=0.5, variant=True), default=1.0
    )
    layout: Literal["interleaved", "halves"] = argument(default="interleaved")

    shift_invariant = True

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        width = self._find_rotary_width(query_shape[-1])
        check_even(
            width,
            "the rotated width of a head, "
            f"rotary_fraction={self.rotary_fraction} of {query_shape[-1]},",
        )
        if width == 0:
            raise ValueError(
                f"rotary_fraction={self.rotary_fraction} of a head of width "
                f"{query_shape[-1]} rotates nothing: raise one of the two."
            )

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        """Computes cosines and sines of the queries and of the keys."""
        width, length = self._find_rotary_width(spec.width), spec.length
        length = ops.shape(key_positions)[-1] if length is None else length
        rates = self._double(self._find_rates(width, length))
        magnitude = self._find_magnitude(length)
        query_turn = self._turn(query_positions, rates, spec, magnitude)
        if key_positions is query_positions:
            return query_turn, query_turn
        return query_turn, self._turn(key_positions, rates, spec, magnitude)

    def rotate(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: Positions,
        key_positions: Positions,
        *,
        length: Size | None = None,
        prepared: Any = None,
    ) -> tuple[Tensor, Tensor]:
        if prepared is None:
            spec = AttentionSpec.of(query, length=length)
            prepared = self.prepare(query_positions, key_positions, spec)
        query_turn, key_turn = prepared
        sizes = key_sizes = ops.shape(query)[:2]
        if key_turn is not query_turn:
            key_sizes = ops.shape(key)[:2]
        return (
            self._apply(query, query_turn, sizes),
            self._apply(key, key_turn, key_sizes),
        )

    def _find_rotary_width(self, head_width: int) -> int:
        # Rounded, because 58 / 100 * 100 is less than 58.
        return round(head_width * self.rotary_fraction)

    def _find_rates(self, width: int, length: Size) -> Array | Tensor:
        """Computes the angle per position of each pair, in radians.

        Args:
            width: int, number `R` of rotated features.
            length: Length of the whole sequence in tokens, `()` or `(B,)`.

        Returns:
            A float64 array `(R / 2,)`; a float32 tensor `(R / 2,)` or
            `(B, 1, R / 2)` if it depends on a length that is a tensor.
        """
        return self._find_frequencies(width)

    def _find_frequencies(self, width: int) -> Array:
        """Returns the angle per position of each pair, before any scaling.

        Args:
            width: int, number `R` of rotated features.

        Returns:
            float64 `(R / 2,)`, 0 for pairs that are not rotated.
        """
        rates = frequencies(width, self.max_wavelength)
        # Rounded first, because 0.29 * 100 is less than 29.
        moving = math.floor(round(self.fastest_fraction * len(rates), 6))
        rates[moving:] = 0
        return rates

    def _find_magnitude(self, length: Size) -> float | Tensor | None:
        """Computes the factor of rotated queries and keys, `None` for 1."""
        return None

    def _double(self, pairs: Array | Tensor) -> Array | Tensor:
        """Repeats a number of each pair `(..., R / 2)` for both features."""
        numpy = isinstance(pairs, np.ndarray)
        repeat, concatenate = (
            (np.repeat, np.concatenate)
            if numpy
            else (ops.repeat, ops.concatenate)
        )
        if self.layout == "halves":
            return concatenate([pairs, pairs], axis=-1)
        return repeat(pairs, 2, axis=-1)

    def _turn(
        self,
        positions: Tensor,
        rates: Array | Tensor,
        spec: AttentionSpec,
        magnitude: float | Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Computes the factors of a feature and of the other in its pair.

        Args:
            positions: Integer or float tensor `(T,)` or `(B, T)`.
            rates: Angle per position of each feature, as for `compute_angles`.
            spec: `AttentionSpec` of the queries.
            magnitude: Factor of the result, or `None` for 1.

        Returns:
            Cosines, which multiply the features, and signed sines, which
            multiply the other feature of each pair; float32 `(T, H, D)` or
            `(B, T, H or 1, D)` each, 1 and 0 for features that are not rotated.
        """
        angles = compute_angles(positions, rates)
        rotated = angles.shape[-1]
        signs = ops.convert_to_tensor(self._find_signs(rotated))
        cosines, sines = ops.cos(angles), ops.sin(angles) * signs
        if magnitude is not None:
            cosines, sines = magnitude * cosines, magnitude * sines
        axes = len(cosines.shape) - 1
        if rotated < spec.width:
            padding = [*([[0, 0]] * axes), [0, spec.width - rotated]]
            cosines = ops.pad(cosines, padding, constant_values=1)
            sines = ops.pad(sines, padding)
        cosines, sines = (
            ops.expand_dims(cosines, -2),
            ops.expand_dims(sines, -2),
        )
        if axes == 2 and keras.backend.backend() != "jax":
            return cosines, sines
        # For all heads: CPUs repeat numbers fastest along the first axis. For
        # positions of each example, that would take too much memory.
        heads = ops.ones((spec.heads, 1), "float32")
        return cosines * heads, sines * heads

    def _find_signs(self, width: int) -> Array:
        """Returns -1 for the first feature of every pair, else 1."""
        signs = np.ones((width // 2,), "float32")
        if self.layout == "halves":
            return np.concatenate([-signs, signs])
        return np.stack([-signs, signs], axis=-1).reshape(-1)

    def _apply(
        self,
        features: Tensor,
        turn: tuple[Tensor, Tensor],
        sizes: tuple[Size, Size],
    ) -> Tensor:
        """Rotates features `(B, T, H, D)`; `sizes` are `(B, T)`."""
        heads, width = features.shape[2:]
        cosines, sines = (ops.cast(each, features.dtype) for each in turn)
        if heads < cosines.shape[-2]:
            # Keys may have fewer heads than queries.
            cosines, sines = cosines[..., :heads, :], sines[..., :heads, :]
        rotated = self._find_rotary_width(width)
        if keras.backend.backend() != "jax":
            swapped = self._swap_in_heads(features, rotated, sizes)
            return features * cosines + swapped * sines
        # TPUs keep the last axis in vectors of 128 numbers: one axis of all
        # heads wastes less of them.
        flat, cosines, sines = (
            ops.reshape(each, (*ops.shape(each)[:-2], heads * width))
            for each in (features, cosines, sines)
        )
        swapped = self._swap_flat(flat, heads, rotated)
        return ops.reshape(
            flat * cosines + swapped * sines, (*sizes, heads, width)
        )

    def _find_steps(self, width: int, rotated: int) -> Array:
        """Finds how far away the other feature of each pair is.

        Args:
            width: int, width `D` of a head.
            rotated: int, number of features of a head that are rotated.

        Returns:
            int32 `(D,)`, 0 for features that are not rotated.
        """
        steps = -self._find_signs(rotated)
        if self.layout == "halves":
            steps = steps * (rotated // 2)
        return np.pad(steps, [0, width - rotated]).astype("int32")

    def _swap_in_heads(
        self, features: Tensor, rotated: int, sizes: tuple[Size, Size]
    ) -> Tensor:
        """Swaps the two features of every pair of `(B, T, H, D)`."""
        heads, width = features.shape[2:]
        if self.layout == "halves":
            first, second, kept = ops.split(
                features, [rotated // 2, rotated], axis=-1
            )
            return ops.concatenate([second, first, kept], axis=-1)
        steps = self._find_steps(width, rotated)
        if width > WIDEST_HEAD:
            return _swap_by_rolls(features, steps)
        # On a CPU, half the time of a flip.
        swapped = ops.matmul(
            ops.reshape(features, (-1, width)), _make_swap(steps, features)
        )
        return ops.reshape(swapped, (*sizes, heads, width))

    def _swap_flat(self, flat: Tensor, heads: int, rotated: int) -> Tensor:
        """Swaps the two features of every pair of all heads.

        Args:
            flat: `(B, T, H * D)`.
            heads: int, number of heads.
            rotated: int, number of features of a head that are rotated.
        """
        steps = self._find_steps(flat.shape[-1] // heads, rotated)
        steps = np.tile(steps, heads)
        # Rounded in float32.
        bfloat16 = keras.backend.standardize_dtype(flat.dtype) == "bfloat16"
        if bfloat16 and flat.shape[-1] <= WIDEST_SWAP:
            return ops.matmul(flat, _make_swap(steps, flat))
        return _swap_by_rolls(flat, steps)


def _make_swap(steps: Array, features: Tensor) -> Tensor:
    """Makes the matrix by which a product swaps the features of pairs.

    The product is exact, unless numbers are rounded before they are multiplied:
    each result is one number times 1.
    """
    indices = np.arange(len(steps))
    swap = (indices[:, None] == indices + steps).astype("float32")
    return ops.cast(ops.convert_to_tensor(swap), features.dtype)


def _swap_by_rolls(features: Tensor, steps: Array) -> Tensor:
    """Swaps the features of all pairs in the last axis."""
    shift = int(np.max(steps))
    return ops.where(
        ops.convert_to_tensor(steps > 0),
        ops.roll(features, -shift, axis=-1),
        ops.roll(features, shift, axis=-1),
    )


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedRoPE(Randomized, RoPE):
    """`RoPE` with randomized positions.

    Takes the arguments of `RandomizedPositions` and `RoPE`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedRoPE
    >>> encoding = RandomizedRoPE(max_position=2048)
    >>> encoding(ops.ones((2, 5, 4, 8))).shape
    TensorShape([2, 5, 4, 8])

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    """
