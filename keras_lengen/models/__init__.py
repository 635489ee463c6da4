"""Transformer models with a choice of positional encoding."""

from keras_lengen.models.conversation import Conversation
from keras_lengen.models.decoder import TransformerDecoder
from keras_lengen.models.encoder import TransformerEncoder
from keras_lengen.models.encoder_decoder import EncoderDecoder
from keras_lengen.models.evaluation import set_evaluation
from keras_lengen.models.looped_decoder import LoopedDecoder
from keras_lengen.models.presets import presets

__all__ = [
    "Conversation",
    "EncoderDecoder",
    "LoopedDecoder",
    "TransformerDecoder",
    "TransformerEncoder",
    "presets",
    "set_evaluation",
]
