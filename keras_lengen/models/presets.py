"""Presets: published configurations, as arguments of the models."""

from typing import Any

import keras

from keras_lengen.checks.arguments import ByName
from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.encodings.nope import NoPE
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.layers.feed_forward import FeedForward
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions
from keras_lengen.layers.recipe import Recipe
from keras_lengen.types import Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_lengen")
def approximate_gelu(x: TensorLike) -> Tensor:
    """Computes the tanh approximation of GELU, with which GPT-2 was trained."""
    return keras.activations.gelu(x, approximate=True)


# One object each, so that layers share what depends on positions only.
_SAMPLER = OrdinalPositions()
_FREE = NoPE()
_NEAR = RoPE(layout="halves", sampler=_SAMPLER)
_FAR = RoPE(max_wavelength=1_000_000, layout="halves", sampler=_SAMPLER)


def _choose_wavelength(layer: int) -> PositionalEncoding:
    return _FAR if layer % 6 == 5 else _NEAR


def _choose_local_window(layer: int) -> Recipe:
    window = None if layer % 6 == 5 else 1024
    return Recipe(
        MultiHeadAttention, sliding_window=window, use_query_key_norm=True
    )


def _rotate_three_of_four(layer: int) -> PositionalEncoding:
    return _FREE if layer % 4 == 0 else _NEAR


def _choose_swan_window(layer: int) -> Recipe:
    window = None if layer % 4 == 0 else 512
    return Recipe(MultiHeadAttention, sliding_window=window, train_length=1024)


_LLAMA: dict[str, Any] = {
    "vocabulary_size": 128256,
    "num_layers": 32,
    "num_heads": 32,
    "num_key_value_heads": 8,
    "model_dim": 4096,
    "feedforward_dim": 14336,
    "dropout": 0.0,
    "encoding": RoPE(max_wavelength=500_000, layout="halves"),
    "normalization": "pre",
    "rms_norm": True,
    "norm_epsilon": 1e-5,
    "feedforward": Recipe(FeedForward, activation="silu", gated=True),
    "use_bias": False,
    "embedding_scale": 1.0,
    "embeddings_initializer": keras.initializers.RandomNormal(stddev=0.02),
    "kernel_initializer": keras.initializers.RandomNormal(stddev=0.02),
}

_PRESETS: dict[str, dict[str, Any]] = {
    # Ruoss et al., 2023, appendix A.
    "ruoss": {
        "num_layers": 5,
        "num_heads": 8,
        "model_dim": 64,
        "dropout": 0.1,
        "normalization": "post",
    },
    # A byte-level decoder for the text experiments on randomized encodings.
    "enwik8": {
        "vocabulary_size": 256,
        "num_layers": 8,
        "num_heads": 8,
        "model_dim": 256,
        "dropout": 0.1,
        "normalization": "post",
    },
    # An encoder-decoder from pixels to one class, for the image experiments.
    "imagenet": {
        "vocabulary_size": 256,
        "target_vocabulary_size": 1,
        "output_size": 1000,
        "num_layers": 8,
        "num_heads": 8,
        "model_dim": 256,
        "dropout": 0.1,
        "normalization": "post",
    },
    # Kazemnejad et al., 2023, appendix D: the decoder of T5-base, except the
    # vocabulary and the dropout inside the feed-forward network. Its layers
    # and initializers are those of Raffel et al., 2020. For another width M,
    # set logit_scale to M ** -0.5.
    "t5_decoder": {
        "num_layers": 12,
        "num_heads": 12,
        "model_dim": 768,
        "feedforward_dim": 3072,
        "dropout": 0.1,
        "attention": Recipe(
            MultiHeadAttention, dropout=0.1, scale_scores=False
        ),
        "embedding_dropout": 0.1,
        "normalization": "pre",
        "rms_norm": True,
        "use_bias": False,
        "tie_embeddings": True,
        "embedding_scale": 1.0,
        "logit_scale": 768**-0.5,
        "embeddings_initializer": keras.initializers.RandomNormal(stddev=1.0),
        "kernel_initializer": keras.initializers.VarianceScaling(
            scale=1.0, mode="fan_in", distribution="untruncated_normal"
        ),
    },
    # Touvron et al., 2023, section 2, with the sizes of Llama 3 8B (Grattafiori
    # et al., 2024, section 3.2). Smaller models of the family set
    # tie_embeddings. Llama 1 and 2 have max_wavelength=10_000.
    "llama": _LLAMA,
    # Gemma Team, 2025 (Gemma 3), section 2: five layers with a window for each
    # layer without one, which has slower rotations, and normalized queries and
    # keys. Sizes and all else as in "llama". Differs from Gemma 3, whose
    # blocks also normalize the results of their parts.
    "local_global": {
        **_LLAMA,
        "encoding": _choose_wavelength,
        "attention": _choose_local_window,
        "norm_epsilon": 1e-6,
    },
    # Puvvada et al., 2025 (SWAN-GPT): one layer without an encoding that sees
    # all keys, then three with rotary encodings and a window. In evaluation,
    # scores are scaled by the logarithm of the length. For another trained
    # length than the 1,024 of the paper, replace train_length in the recipe
    # of each layer. Sizes and all else as in "llama". Differs from the paper:
    # which of the four layers has no encoding, and the window, are those of
    # this library.
    "swan": {
        **_LLAMA,
        "encoding": _rotate_three_of_four,
        "attention": _choose_swan_window,
    },
    # Radford et al., 2019: the smallest model. Its encoding is
    # LearnedEncoding(max_position=1024, initializer=RandomNormal(0.02)).
    # Differs from the original, which initializes the last kernel of each
    # residual branch with a smaller standard deviation.
    "gpt2": {
        "vocabulary_size": 50257,
        "num_layers": 12,
        "num_heads": 12,
        "model_dim": 768,
        "dropout": 0.1,
        "attention": Recipe(MultiHeadAttention, dropout=0.1),
        "normalization": "pre",
        "feedforward": Recipe(FeedForward, activation=approximate_gelu),
        "use_bias": True,
        "tie_embeddings": True,
        "embedding_scale": 1.0,
        "embeddings_initializer": keras.initializers.RandomNormal(stddev=0.02),
        "kernel_initializer": keras.initializers.RandomNormal(stddev=0.02),
    },
}

presets = ByName("preset", _PRESETS)
