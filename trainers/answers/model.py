"""The decoder of T5, which writes answers."""

from keras_lengen.models.presets import presets
from trainers.options.layers import merge_arguments


def decoder_arguments(config, vocabulary_size):
    """Returns the arguments of a decoder that writes answers.

    Args:
        config: Configuration of the run.
        vocabulary_size: int. Number of tokens.
    """
    preset = presets["t5_decoder"]
    own = {
        "feedforward_dim": 4 * config.model_dim,
        "logit_scale": config.model_dim**-0.5,
        "attention": preset["attention"].replace(dropout=config.dropout),
        "embedding_dropout": config.dropout,
    }
    return {
        **merge_arguments({**preset, **own}, config),
        "vocabulary_size": vocabulary_size,
        "output_size": vocabulary_size,
    }
