"""Bias by a learned function of the distance relative to the position."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    LARGEST_WIDTH,
    Integer,
    Number,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.guards import guard
from keras_lengen.layers.encodings.base import AttentionSpec, expand_positions
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.randomized import Randomized
from keras_lengen.types import InputShape, Positions, Shape, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_lengen")
class FIRE(BiasEncoding):
    """Maps the relative distance to a bias by a small network (FIRE).

    For a query at position `i` and a key at position `j`, head `h` adds
    `network[h](f(i - j) / (f(max(i, j, L)) + 1e-6))` to its scores, with
    `f(x) = log(1 + |c * x|)` and `L = |m * threshold|`, where `c` and `m` are
    learned. The network has a layer of `hidden_dim` rectified linear units and
    a linear output layer. Because the distance is divided by a function of the
    position, the network's input lies between 0 and about 1 for sequences of
    any length.

    Stage: `attention_bias`, float32 `(1 or B, H, T, S)`, added to scaled
    scores. Weights, in every layer: `c` and `m`, `hidden_kernel` and
    `hidden_bias (hidden_dim,)`, `output_kernel (hidden_dim, H)` and
    `output_bias (H,)`, which the softmax cancels.
    Positions: any numbers from 0 on. Below `L` only differences matter.

    Args:
        hidden_dim: int, from 1 to `2 ** 16`. Width of the network's hidden
            layer.
        threshold: float above 0, at most `2 ** 24`. Position above which
            distances are relative to the position, as long as `m` has its
            initial value 1; choose about the longest trained length.
        share_layers: bool, whether all layers share the weights (FIRE-S).
        sampler: `PositionSampler` without negative positions, or `None` for
            positions 0, 1, 2, ...

    Raises:
        ValueError: If an argument is out of range, or positions are negative.
            If positions are known only when a compiled program runs, the
            program ends with an assertion; under XLA, the bias is NaN.

    Differs from the paper: the paper is about causal attention and has `i` in
    place of `max(i, j)`. The two differ for future keys, which causal
    attention masks, and otherwise only if positions are out of order.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import FIRE
    >>> FIRE()(ops.ones((2, 3, 8, 4))).shape
    TensorShape([1, 8, 3, 3])

    Reference: Li et al., 2024, section 3 (with the initializers of PyTorch).
    https://arxiv.org/abs/2310.04418
    """

    hidden_dim: int = argument(
        Integer(
            most=LARGEST_WIDTH, example=16, what="the width of the network"
        ),
        default=32,
    )
    threshold: float = argument(
        Number(most=LARGEST_POSITION, above=0, example=32), default=512
    )
    share_layers: bool = argument(default=False)

    takes_negative = False

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        super().build(query_shape, key_shape)
        heads = query_shape[-2]
        self.c = self._add_weight("c", (), keras.initializers.Constant(0.1))
        self.m = self._add_weight("m", (), "ones")
        self.hidden_kernel, self.hidden_bias = (
            self._add_weight(name, (self.hidden_dim,), _make_uniform(fan_in=1))
            for name in ("hidden_kernel", "hidden_bias")
        )
        self.output_kernel, self.output_bias = (
            self._add_weight(name, shape, _make_uniform(fan_in=self.hidden_dim))
            for name, shape in (
                ("output_kernel", (self.hidden_dim, heads)),
                ("output_bias", (heads,)),
            )
        )

    def _add_weight(self, name: str, shape: Shape, initializer: Any) -> Tensor:
        return self.add_weight(
            name=name, shape=shape, initializer=initializer, autocast=False
        )

    def given_positions(
        self, positions: TensorLike, inputs: Tensor, *, name: str = "positions"
    ) -> Positions:
        positions = super().given_positions(positions, inputs, name=name)
        if isinstance(positions, keras.KerasTensor):
            return positions
        return guard(
            positions,
            ops.all(positions >= 0, axis=-1),
            f"{name} must be at least 0, from where {type(self).__name__} "
            "counts; got ",
            lambda: ops.min(positions),
            ": shift them, or choose another encoding, such as LogKERPLE.",
        )

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        # A sampler within DAPE or AxialEncoding may give negative positions.
        queries, keys = (
            ops.where(numbers >= 0, numbers, float("nan"))
            for numbers in (
                expand_positions(query_positions, 1),
                ops.expand_dims(expand_positions(key_positions, 0), -2),
            )
        )
        return queries - keys, ops.maximum(queries, keys)

    def bias_at(self, prepared: Any, query: Tensor, key: Tensor) -> Tensor:
        c, m, hidden_kernel, hidden_bias, output_kernel, output_bias = (
            self._find_weights()
        )
        steps, further = prepared
        distances = self._normalize_distances(steps, further, c, m)
        if len(distances.shape) == 2:
            distances = ops.expand_dims(distances, 0)
        batch_size, tokens, keys = ops.shape(distances)
        # The axes of the tokens come last, as in the scores, to avoid a
        # transposition.
        pairs = ops.reshape(distances, (batch_size, 1, -1))
        hidden = ops.relu(
            ops.expand_dims(hidden_kernel, -1) * pairs
            + ops.expand_dims(hidden_bias, -1)
        )
        bias = ops.matmul(ops.transpose(output_kernel), hidden)
        bias = bias + ops.expand_dims(output_bias, -1)
        return ops.reshape(bias, (batch_size, -1, tokens, keys))

    def bias_of_pair(
        self,
        parameters: Sequence[Tensor],
        query_position: Tensor,
        key_position: Tensor,
        *,
        causal: bool = False,
    ) -> Tensor:
        c, m, bias, *network = parameters
        queries, keys = (
            ops.where(position >= 0, position, float("nan"))
            for position in (query_position, key_position)
        )
        distances = self._normalize_distances(
            queries - keys, ops.maximum(queries, keys), c, m
        )
        for unit in range(self.hidden_dim):
            kernel, shift, output = network[unit :: self.hidden_dim]
            bias = bias + output * ops.relu(kernel * distances + shift)
        return bias

    def make_pair_parameters(self, heads: int) -> Tensor:
        c, m, hidden_kernel, hidden_bias, output_kernel, output_bias = (
            self._find_weights()
        )
        return ops.concatenate(
            [
                ops.broadcast_to(c, (heads, 1)),
                ops.broadcast_to(m, (heads, 1)),
                ops.expand_dims(output_bias, -1),
                ops.broadcast_to(hidden_kernel, (heads, self.hidden_dim)),
                ops.broadcast_to(hidden_bias, (heads, self.hidden_dim)),
                ops.transpose(output_kernel),
            ],
            axis=-1,
        )

    def _find_weights(self) -> list[Tensor]:
        return [
            ops.cast(weight, "float32")
            for weight in (
                self.c,
                self.m,
                self.hidden_kernel,
                self.hidden_bias,
                self.output_kernel,
                self.output_bias,
            )
        ]

    def _normalize_distances(
        self, steps: Tensor, further: Tensor, c: Tensor, m: Tensor
    ) -> Tensor:
        """Computes the inputs of the network.

        Args:
            steps: Positions of queries less those of keys, float32.
            further: The larger position of each pair, float32.
            c: The weight `c`.
            m: The weight `m`.
        """
        reach = ops.maximum(further, ops.abs(m * self.threshold))
        # ONNX has no log1p.
        distances = ops.log(1 + ops.abs(c * steps))
        return distances / (ops.log(1 + ops.abs(c * reach)) + 1e-6)


@keras.saving.register_keras_serializable(package="keras_lengen")
class RandomizedFIRE(Randomized, FIRE):
    """`FIRE` with randomized positions.

    Takes the arguments of `RandomizedPositions` and `FIRE`.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedFIRE
    >>> RandomizedFIRE(max_position=2048)(ops.ones((2, 5, 4, 8))).shape
    TensorShape([1, 4, 5, 5])

    Reference: Ruoss et al., 2023. https://arxiv.org/abs/2305.16843
    """


def _make_uniform(fan_in: int) -> keras.initializers.Initializer:
    # PyTorch draws kernels and biases of linear layers from this distribution.
    limit = fan_in**-0.5
    return keras.initializers.RandomUniform(-limit, limit)
