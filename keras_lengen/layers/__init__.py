"""Keras layers for Transformers that generalize to longer sequences."""

from keras_lengen.layers import attention, encodings, positions
from keras_lengen.layers.attention import *  # noqa: F403
from keras_lengen.layers.attention import ATTENTIONS
from keras_lengen.layers.encodings import *  # noqa: F403
from keras_lengen.layers.encodings import ENCODINGS
from keras_lengen.layers.feed_forward import FeedForward
from keras_lengen.layers.positions import *  # noqa: F403
from keras_lengen.layers.positions import SAMPLERS, TOKEN_SAMPLERS
from keras_lengen.layers.recipe import Recipe
from keras_lengen.layers.transformer import TransformerBlock

__all__ = [
    "ATTENTIONS",
    "ENCODINGS",
    "SAMPLERS",
    "TOKEN_SAMPLERS",
    "FeedForward",
    "Recipe",
    "TransformerBlock",
]
# `+=`, because type checkers do not read starred expressions in `__all__`.
__all__ += attention.__all__
__all__ += encodings.__all__
__all__ += positions.__all__
