"""Feed-forward network of a Transformer block."""

from typing import Any

import keras

from keras_lengen.checks.arguments import (
    Activation,
    Initializer,
    Integer,
    Optional,
)
from keras_lengen.checks.constructors import WithArguments, argument
from keras_lengen.checks.inputs import find_width
from keras_lengen.layers.initializers import kernel_initializer
from keras_lengen.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class FeedForward(WithArguments, keras.layers.Layer):
    """Feed-forward network: a hidden layer of each token, and back.

    A block makes it from its argument `feedforward`, and a subclass can take
    its place there.

    Args:
        hidden_dim: int, at least 1. Width of the hidden layer, or `None` for
            `4 * M`.
        activation: Activation of the hidden layer, or `None` for none.
        gated: bool, whether the hidden layer is a product
            `activation(gate(x)) * hidden(x)` of two projections: SwiGLU with
            the activation `"silu"`, GEGLU with `"gelu"`.
        use_bias: bool, whether the projections have biases.
        kernel_initializer: Initializer of the kernels, or `None` for a
            truncated normal distribution with standard deviation
            `1 / sqrt(inputs)` before truncation, where `inputs` is the number
            of input features of the kernel.

    Call arguments:
        inputs: Float tensor `(B, T, M)`.

    Returns:
        Float tensor `(B, T, M)` in the compute dtype.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import FeedForward, Recipe, TransformerBlock
    >>> swiglu = Recipe(FeedForward, activation="silu", gated=True)
    >>> block = TransformerBlock(num_heads=4, feedforward=swiglu)
    >>> block(ops.ones((2, 10, 32))).shape
    TensorShape([2, 10, 32])

    Reference: Vaswani et al., 2017, section 3.3.
    https://arxiv.org/abs/1706.03762
    Gates: Shazeer, 2020, section 2. https://arxiv.org/abs/2002.05202
    """

    hidden_dim: int | None = argument(
        Optional(Integer(example=24)), default=None
    )
    activation: Any = argument(Activation(example="gelu"), default="relu")
    gated: bool = argument(default=False)
    use_bias: bool = argument(default=True)
    kernel_initializer: Any = argument(
        Optional(Initializer(example="he_normal")), default=None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.supports_masking = True

    def build(self, inputs_shape: Shape) -> None:
        width = find_width(inputs_shape)
        hidden = 4 * width if self.hidden_dim is None else self.hidden_dim
        activation: Any = self.activation
        if self.gated:
            self.gate_dense = self._make_dense("gate", hidden, activation)
            self.gate_dense.build(inputs_shape)
            activation = None
        self.hidden_dense = self._make_dense("hidden", hidden, activation)
        self.hidden_dense.build(inputs_shape)
        self.output_dense = self._make_dense("output", width, None)
        self.output_dense.build((*inputs_shape[:-1], hidden))

    def _make_dense(
        self, name: str, width: int, activation: Any
    ) -> keras.layers.Dense:
        return keras.layers.Dense(
            width,
            activation=activation,
            use_bias=self.use_bias,
            kernel_initializer=kernel_initializer(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def call(self, inputs: Tensor) -> Tensor:
        hidden = self.hidden_dense(inputs)
        if self.gated:
            hidden = self.gate_dense(inputs) * hidden
        return self.output_dense(hidden)

    def compute_output_shape(self, inputs_shape: Shape) -> Shape:
        return inputs_shape
