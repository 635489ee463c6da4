"""Attention, each kind in a file of its own."""

from keras_lengen.checks.arguments import ByName
from keras_lengen.layers.attention.forgetting_attention import (
    ForgettingAttention,
)
from keras_lengen.layers.attention.geometric_attention import (
    GeometricAttention,
)
from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.layers.attention.path_attention import PaTHAttention
from keras_lengen.layers.attention.scores import LengthFactor
from keras_lengen.layers.attention.stick_breaking_attention import (
    StickBreakingAttention,
)

_ATTENTIONS = {
    "MultiHeadAttention": MultiHeadAttention,
    "GeometricAttention": GeometricAttention,
    "StickBreakingAttention": StickBreakingAttention,
    "ForgettingAttention": ForgettingAttention,
    "PaTHAttention": PaTHAttention,
}

ATTENTIONS = ByName("attention", _ATTENTIONS)

__all__ = [
    "ForgettingAttention",
    "GeometricAttention",
    "LengthFactor",
    "MultiHeadAttention",
    "PaTHAttention",
    "StickBreakingAttention",
]
