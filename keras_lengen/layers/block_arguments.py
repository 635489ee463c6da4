"""Arguments of a Transformer block, which models pass on to their blocks."""

from typing import Any, Literal

import keras

from keras_lengen.checks.arguments import (
    Initializer,
    Integer,
    Number,
    Optional,
)
from keras_lengen.checks.constructors import WithArguments, argument
from keras_lengen.layers.feed_forward import FeedForward
from keras_lengen.layers.layer_normalization import LayerNormalization
from keras_lengen.layers.recipe import Recipe, RecipeArgument


class FeedForwardRecipe(RecipeArgument):
    """A recipe of the feed-forward network."""

    def __init__(self) -> None:
        swiglu = Recipe(FeedForward, activation="silu", gated=True)
        super().__init__(FeedForward, given=("hidden_dim",), example=swiglu)


class BlockArguments(WithArguments, keras.layers.Layer):
    """Base of the block, and of the models, which pass these on to blocks.

    `TransformerBlock` describes the arguments.
    """

    num_heads: int = argument(Integer(example=4))
    feedforward_dim: int | None = argument(
        Optional(Integer(example=24)), default=None
    )
    dropout: float = argument(Number(0, below=1, example=0.5), default=0.0)
    normalization: Literal["post", "pre"] | None = argument(default="post")
    rms_norm: bool = argument(default=False)
    norm_epsilon: float | None = argument(
        Optional(Number(above=0, example=0.5)), default=None
    )
    feedforward: FeedForwardRecipe = argument(FeedForwardRecipe(), default=None)
    use_bias: Literal["feedforward"] | bool = argument(default="feedforward")
    num_key_value_heads: int | None = argument(
        Optional(Integer(example=1)), default=None
    )
    kernel_initializer: Any = argument(
        Optional(Initializer(example="he_normal")), default=None
    )

    def make_norm(self, name: str) -> keras.Layer:
        """Makes a norm of the chosen kind."""
        cls, epsilon = LayerNormalization, 1e-5
        if self.rms_norm:
            cls, epsilon = keras.layers.RMSNormalization, 1e-6
        norm = cls(
            epsilon=self.norm_epsilon or epsilon,
            dtype=self.dtype_policy,
            name=name,
        )
        # It treats tokens apart, but Keras warns that RMS norms lose a mask.
        norm.supports_masking = True
        return norm

    def list_block_arguments(self) -> dict[str, Any]:
        """Lists the arguments by name, as a block takes them."""
        return {
            name: getattr(self, name) for name in BlockArguments.arguments()
        }
