"""Keras layers for Transformers that generalize to longer sequences."""

from keras_lengen.layers import encodings, positions
from keras_lengen.layers.attention import MultiHeadAttention
from keras_lengen.layers.encodings import *  # noqa: F403
from keras_lengen.layers.encodings import ENCODINGS
from keras_lengen.layers.forgetting_attention import ForgettingAttention
from keras_lengen.layers.geometric_attention import GeometricAttention
from keras_lengen.layers.positions import *  # noqa: F403
from keras_lengen.layers.positions import SAMPLERS, TOKEN_SAMPLERS
from keras_lengen.layers.stick_breaking_attention import (
    StickBreakingAttention,
)
from keras_lengen.layers.transformer import TransformerBlock

ATTENTIONS = {
    "MultiHeadAttention": MultiHeadAttention,
    "GeometricAttention": GeometricAttention,
    "StickBreakingAttention": StickBreakingAttention,
    "ForgettingAttention": ForgettingAttention,
}

__all__ = [
    "ATTENTIONS",
    "ENCODINGS",
    "SAMPLERS",
    "TOKEN_SAMPLERS",
    "ForgettingAttention",
    "GeometricAttention",
    "MultiHeadAttention",
    "StickBreakingAttention",
    "TransformerBlock",
]
# `+=`, because type checkers do not read starred expressions in `__all__`.
__all__ += encodings.__all__
__all__ += positions.__all__
