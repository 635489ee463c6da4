"""Arguments of a Transformer block, which models pass on to their blocks."""

from typing import Any, Literal, TypedDict

import keras

from keras_lengen.checks.arguments import (
    Activation,
    Boolean,
    Choice,
    Initializer,
    Integer,
    Number,
    Optional,
    Subclass,
    WithArguments,
)
from keras_lengen.layers.attention.chunks import ChunkSize
from keras_lengen.layers.attention.multi_head import (
    MultiHeadAttention,
    check_head_groups,
)
from keras_lengen.layers.layer_normalization import LayerNormalization


class BlockOptions(TypedDict, total=False):
    """Types of the optional arguments, for `Unpack`."""

    feedforward_dim: int | None
    dropout: float
    attention_dropout: float
    attention: type[MultiHeadAttention] | None
    normalization: Literal["post", "pre"] | None
    rms_norm: bool
    norm_epsilon: float | None
    activation: Any
    gated_feedforward: bool
    use_bias: Literal["feedforward"] | bool
    num_key_value_heads: int | None
    scale_scores: bool
    score_factor: Literal["head", "log_length", "adaptive"] | None
    train_length: int | None
    logit_soft_cap: float | None
    use_query_key_norm: bool
    use_gate: bool
    use_sinks: bool
    use_entmax: bool
    sink_tokens: int
    chunk_size: int | Literal["auto"] | None
    fused: Literal["auto"] | bool
    kernel_initializer: Any


SELF_ATTENTION = (
    "score_factor",
    "train_length",
    "logit_soft_cap",
    "use_query_key_norm",
    "use_gate",
    "use_sinks",
    "use_entmax",
    "sliding_window",
    "sink_tokens",
)
"""Names of the arguments that only self-attention takes."""


class BlockArguments(WithArguments, keras.layers.Layer):
    """Base of the block, and of the models, which pass these on to blocks.

    `TransformerBlock` describes the arguments.
    """

    num_heads = Integer(example=4)
    feedforward_dim = Optional(Integer(example=24))
    dropout = Number(0, below=1, example=0.5)
    attention_dropout = Number(0, below=1, example=0.5)
    attention = Optional(Subclass(MultiHeadAttention))
    normalization = Choice("post", "pre", None)
    rms_norm = Boolean()
    norm_epsilon = Optional(Number(above=0, example=0.5))
    activation = Activation(example="gelu")
    gated_feedforward = Boolean()
    use_bias = Choice("feedforward", True, False)
    num_key_value_heads = Optional(Integer(example=1))
    scale_scores = Boolean()
    score_factor = Choice("head", "log_length", "adaptive", None)
    train_length = Optional(Integer(2, example=3))
    logit_soft_cap = Optional(Number(above=0, example=0.5))
    use_query_key_norm = Boolean()
    use_gate = Boolean()
    use_sinks = Boolean()
    use_entmax = Boolean()
    sliding_window = Optional(Integer(example=3))
    sink_tokens = Integer(0, example=1)
    chunk_size = ChunkSize(example=3)
    fused: Any = Choice("auto", True, False)
    kernel_initializer = Optional(Initializer(example="he_normal"))

    def assign(self, values: dict[str, Any]) -> None:
        super().assign(values)
        check_head_groups(self.num_heads, self.num_key_value_heads)

    def list_self_attention_arguments(self) -> dict[str, Any]:
        """Lists the arguments that only self-attention takes, by name."""
        arguments = {name: getattr(self, name) for name in SELF_ATTENTION}
        if self.norm_epsilon is not None:
            arguments["norm_epsilon"] = self.norm_epsilon
        return arguments

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
