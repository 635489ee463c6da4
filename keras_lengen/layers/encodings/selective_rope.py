"""Rotary position embedding with angles from the content of the tokens."""

from typing import Any

import keras
from keras import ops

from keras_lengen.checks.arguments import Integer
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.inputs import check_rank, guard_same_size
from keras_lengen.layers.documents import convolve_tokens, find_documents
from keras_lengen.layers.encodings.rotary import RotaryEncoding
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    MaxWavelength,
    check_even,
    frequencies,
)
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions
from keras_lengen.layers.real_tokens import (
    order_real_tokens,
    rank_real_tokens,
)
from keras_lengen.types import (
    InputShape,
    Positions,
    Shape,
    Size,
    Tensor,
    TensorLike,
)

KERNEL_SIZE = 4
"""Number of tokens that the convolution reads, a token and three before it."""


@keras.saving.register_keras_serializable(package="keras_lengen")
class SelectiveRoPE(RotaryEncoding):
    """Rotates queries and keys by angles computed from the tokens' features.

    Each token `t`, with features `x[t]`, makes a step
    `z[t] = W2 W1 x[t] / |x[t]|`, `D / 2` numbers for each head. Feature pair
    `m` of token `t` is rotated by the angle
    `max_wavelength ** (-2 * m / D) * sum(a[u] for u in 0 .. t)` with
    `a[u] = sum(k[l] * z[u - l] for l in 0 .. 3)`, a causal convolution with a
    learned kernel for each number. A product of a query and a key thus depends
    on all tokens between them: a token can turn by much, not at all or back.
    If all `a[u]` are equal, it is `RoPE`, whose angles grow by the same amount
    for each token. 1e-6 is added to the squared norm of `x[t]`, so that the
    gradients of tokens of zeros are not too large.

    Stage: `rotate`, `(B, T, H, D)` to the same; features `m` and `m + D / 2`
    form a pair. Attention passes it the features of the tokens, in
    self-attention only. A cache holds the steps after the features of each key,
    `D + D / 2` numbers. Called as a layer, it takes the features as `inputs`,
    float `(B, T, M)`; `None` for the queries of all heads.
    Weights: float32, `(M, rank)`, `(rank, heads, D / 2)` and
    `(4, heads, D / 2)`, where `heads` are those of the keys; every layer of a
    model has its own.
    Positions: ignored. Tokens are read in their order, and padding makes no
    step.

    Args:
        max_wavelength: float above 1, at most `2 ** 40`. Base of the geometric
            series of frequencies, by which steps are multiplied.
        rank: int, at least 1. Number of columns of `W1`.
        sampler: `None`, because positions have no effect.

    Raises:
        ValueError: If the width of a head is odd, an argument is out of range,
            or there is a sampler; in attention, if keys are not the queries'
            own tokens.

    Differs from the authors' code: all features of a token are divided by their
    common norm, and not those of each head by a norm of their own. The optional
    gate and bias of the steps are left out.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import MultiHeadAttention, SelectiveRoPE
    >>> attention = MultiHeadAttention(4, 8, encoding=SelectiveRoPE())
    >>> x = ops.ones((2, 10, 32))
    >>> attention(x, x, use_causal_mask=True).shape
    TensorShape([2, 10, 32])

    Reference: Movahedi et al., 2025. https://arxiv.org/abs/2511.17388
    """

    max_wavelength: float = argument(MaxWavelength(), default=500_000)
    rank: int = argument(Integer(example=3), default=16)

    share_layers = False
    shift_invariant = True
    uses_token_index = True
    reads_inputs = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.sampler, OrdinalPositions):
            raise ValueError(
                f"sampler={type(self.sampler).__name__} has no use in "
                "SelectiveRoPE, whose angles do not depend on positions: leave "
                "sampler out."
            )

    def build(
        self,
        query_shape: InputShape,
        key_shape: InputShape | None = None,
        inputs_shape: InputShape | None = None,
    ) -> None:
        super().build(query_shape, key_shape)
        *heads, width = query_shape[2:]
        check_even(width, "the width of a head")
        key_heads = query_shape if key_shape is None else key_shape
        pairs = (key_heads[2] if heads else 1, width // 2)
        if inputs_shape is None:
            # The features of all heads.
            inputs_shape = (heads[0] * width if heads else width,)
        self.down = self._add("down", (inputs_shape[-1], self.rank))
        self.up = self._add("up", (self.rank, *pairs))
        self.kernel = self._add("kernel", (KERNEL_SIZE, *pairs))

    def _add(self, name: str, shape: tuple[int, ...]) -> keras.Variable:
        """Creates a weight whose first axis is summed over."""
        limit = shape[0] ** -0.5
        return self.add_weight(
            name=name,
            shape=shape,
            initializer=keras.initializers.RandomUniform(-limit, limit),
            autocast=False,
        )

    def call(
        self,
        query: TensorLike,
        key: TensorLike | None = None,
        *,
        inputs: TensorLike | None = None,
        positions: TensorLike | None = None,
        key_positions: TensorLike | None = None,
        start_index: Size = 0,
        length: TensorLike | None = None,
        training: bool | None = None,
    ) -> Any:
        return self._rotate_inputs(
            *(query, key, positions, key_positions),
            start_index=start_index,
            length=length,
            training=training,
            inputs=inputs,
        )

    def check_features(self, key_shape: Shape, inputs_shape: Shape) -> None:
        width, heads = self.down.shape[0], self.up.shape[1]
        for what, wanted, got in (
            ("keys of {} heads", heads, key_shape[2]),
            ("inputs of width {}", width, inputs_shape[-1]),
        ):
            if wanted != got:
                raise ValueError(
                    f"this SelectiveRoPE was built for {what.format(wanted)}; "
                    f"got {what.format(got)}: make another encoding for them."
                )

    def angle_increments(self, inputs: Tensor) -> Tensor:
        inputs = ops.cast(inputs, "float32")
        square = ops.sum(ops.square(inputs), axis=-1, keepdims=True)
        inputs = inputs * ops.rsqrt(square + 1e-6)
        low = ops.matmul(inputs, ops.cast(self.down, "float32"))
        return ops.einsum("btr,rhc->bthc", low, ops.cast(self.up, "float32"))

    def rotate_by(
        self,
        query: Tensor,
        key: Tensor,
        steps: Tensor,
        indices: Tensor,
        mask: Tensor | None = None,
        runs: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        angles = self._find_angles(ops.cast(steps, "float32"), mask, runs)
        query_angles = ops.take(angles, indices, axis=1)
        groups = query.shape[2] // key.shape[2]
        if groups > 1:
            query_angles = ops.repeat(query_angles, groups, axis=2)
        return _rotate(query, query_angles), _rotate(key, angles)

    def rotate(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: Positions,
        key_positions: Positions,
        *,
        length: Size | None = None,
        prepared: Any = None,
        inputs: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Rotates queries and keys of the same tokens.

        Positions have no effect. `inputs` are features of the tokens,
        `(B, T, M)`, or `None` for the queries of all heads.
        """
        batch_size, tokens, heads, width = ops.shape(query)
        if inputs is None:
            inputs = ops.reshape(query, (batch_size, tokens, heads * width))
        check_rank("inputs", inputs, (3,), "(B, T, M)")
        self.check_features(key.shape, inputs.shape)
        for name, tensor in (("key", key), ("inputs", inputs)):
            query = guard_same_size(query, 1, query=query, **{name: tensor})
        indices = ops.arange(tokens, dtype="int32")
        return self.rotate_by(
            query, key, self.angle_increments(inputs), indices
        )

    def _find_angles(
        self,
        steps: Tensor,
        mask: Tensor | None,
        runs: Tensor | None = None,
    ) -> Tensor:
        """Computes the angles of all tokens, `(B, S, heads, D / 2)`.

        Args:
            steps: float32 of the same shape.
            mask: Boolean tensor `(B, S)`, true for real tokens, or `None`.
            runs: Run of each token, int32 `(B, S)`, or `None`.
        """
        if mask is not None:
            order = order_real_tokens(mask)
            steps = _take(steps, order)
            if runs is not None:
                runs = ops.take_along_axis(runs, order, axis=1)
        kernel = ops.cast(self.kernel, "float32")
        angles = ops.cumsum(convolve_tokens(steps, kernel, runs), axis=1)
        if runs is not None:
            angles = angles - _take(
                ops.pad(angles, [[0, 0], [1, 0], [0, 0], [0, 0]]),
                ops.arange(ops.shape(runs)[1]) - find_documents(runs).ranks,
            )
        rates = frequencies(2 * steps.shape[-1], self.max_wavelength)
        angles = angles * ops.convert_to_tensor(rates, "float32")
        if mask is not None:
            ranks = ops.maximum(rank_real_tokens(mask), 0)
            angles = _take(angles, ranks)
        return angles


def _take(numbers: Tensor, indices: Tensor) -> Tensor:
    """Takes tokens of `(B, S, heads, width)` by indices `(B, S)`."""
    return ops.take_along_axis(
        numbers, ops.expand_dims(indices, (-1, -2)), axis=1
    )


def _rotate(features: Tensor, angles: Tensor) -> Tensor:
    """Rotates features `(B, T, H, D)` by angles `(B, T, H, D / 2)`."""
    first, second = ops.split(features, 2, axis=-1)
    cosines, sines = (
        ops.cast(each, features.dtype)
        for each in (ops.cos(angles), ops.sin(angles))
    )
    return ops.concatenate(
        [first * cosines - second * sines, first * sines + second * cosines],
        axis=-1,
    )
