"""Arguments of a Transformer block, which models pass on to their blocks."""

from typing import Any, Literal, TypedDict

import keras

from keras_lengen.checks.arguments import (
    Boolean,
    Choice,
    Initializer,
    Integer,
    Number,
    Optional,
    WithArguments,
)
from keras_lengen.layers.attention.multi_head import check_head_groups
from keras_lengen.layers.feed_forward import FeedForward
from keras_lengen.layers.layer_normalization import LayerNormalization
from keras_lengen.layers.recipe import Recipe, RecipeArgument


class FeedForwardRecipe(RecipeArgument):
    """A recipe of the feed-forward network."""

    def __init__(self) -> None:
        swiglu = Recipe(FeedForward, activation="silu", gated=True)
        super().__init__(FeedForward, given=("hidden_dim",), example=swiglu)


class BlockOptions(TypedDict, total=False):
    """Types of the optional arguments, for `Unpack`."""

    feedforward_dim: int | None
    dropout: float
    normalization: Literal["post", "pre"] | None
    rms_norm: bool
    norm_epsilon: float | None
    use_bias: Literal["feedforward"] | bool
    num_key_value_heads: int | None
    kernel_initializer: Any


class BlockArguments(WithArguments, keras.layers.Layer):
    """Base of the block, and of the models, which pass these on to blocks.

    `TransformerBlock` describes the arguments.
    """

    num_heads = Integer(example=4)
    feedforward_dim = Optional(Integer(example=24))
    dropout = Number(0, below=1, example=0.5)
    normalization = Choice("post", "pre", None)
    rms_norm = Boolean()
    norm_epsilon = Optional(Number(above=0, example=0.5))
    feedforward = FeedForwardRecipe()
    use_bias = Choice("feedforward", True, False)
    num_key_value_heads = Optional(Integer(example=1))
    kernel_initializer = Optional(Initializer(example="he_normal"))

    def assign(self, values: dict[str, Any]) -> None:
        super().assign(values)
        check_head_groups(self.num_heads, self.num_key_value_heads)

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
