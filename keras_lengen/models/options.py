"""Types of the arguments of the models, for `Unpack`."""

from typing import Any, Literal, Required, TypedDict

from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.layers.block_arguments import BlockOptions
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.feed_forward import FeedForward
from keras_lengen.layers.recipe import Recipe
from keras_lengen.models.per_layer import ByLayer


class LayerOptions(TypedDict, total=False):
    """Arguments of all Keras layers."""

    name: str | None
    trainable: bool
    dtype: Any


class SharedOptions(BlockOptions, total=False):
    """Arguments that encoder and decoder of an `EncoderDecoder` share."""

    num_heads: Required[int]
    model_dim: Required[int]
    embedding_dropout: float | None
    encoding: ByLayer[PositionalEncoding | None]
    attention: ByLayer[Recipe | type[MultiHeadAttention] | None]
    feedforward: ByLayer[Recipe | type[FeedForward] | None]
    tie_embeddings: bool
    embedding_scale: float | None
    logit_scale: float
    embeddings_initializer: Any
    share_positions: Literal["model", "layer"]


class DecoderOptions(SharedOptions, LayerOptions, total=False):
    """Arguments that all decoders take."""

    num_layers: Required[int]


class LoopedOptions(DecoderOptions, total=False):
    """Arguments that a looped decoder passes on."""

    vocabulary_size: Required[int]
    output_size: int | None
    cross_attention: bool
    cross_encoding: PositionalEncoding | None


class EncoderOptions(DecoderOptions, total=False):
    """Arguments of an encoder."""

    vocabulary_size: Required[int]
    output_size: Required[int | None]
