"""Published set-ups, as arguments of the models."""

import keras


@keras.saving.register_keras_serializable(package="keras_lengen")
def approximate_gelu(x):
    """GELU by its tanh approximation, the one that GPT-2 was trained with."""
    return keras.activations.gelu(x, approximate=True)


presets = {
    # Ruoss et al., 2023, appendix A.
    "ruoss": {
        "num_layers": 5,
        "num_heads": 8,
        "model_dim": 64,
        "dropout": 0.1,
        "normalization": "post",
    },
    # A decoder of bytes, of the text experiments on randomized encodings.
    "enwik8": {
        "vocabulary_size": 256,
        "num_layers": 8,
        "num_heads": 8,
        "model_dim": 256,
        "dropout": 0.1,
        "normalization": "post",
    },
    # An encoder-decoder from pixels to one class, of those on images.
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
    # Kazemnejad et al., 2023, appendix D: the decoder of T5-base, but for the
    # vocabulary and the dropout between feed-forward maps. Raffel et al.,
    # 2020, for its parts and their initial values. Other widths M need a
    # logit_scale of M ** -0.5.
    "t5_decoder": {
        "num_layers": 12,
        "num_heads": 12,
        "model_dim": 768,
        "feedforward_dim": 3072,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "embedding_dropout": 0.1,
        "normalization": "pre",
        "rms_norm": True,
        "use_bias": False,
        "scale_scores": False,
        "tie_embeddings": True,
        "embedding_scale": 1.0,
        "logit_scale": 768**-0.5,
        "embeddings_initializer": keras.initializers.RandomNormal(stddev=1.0),
        "kernel_initializer": keras.initializers.VarianceScaling(
            scale=1.0, mode="fan_in", distribution="untruncated_normal"
        ),
    },
    # Radford et al., 2019: the smallest one. Its encoding is
    # LearnedEncoding(max_position=1024, initializer=RandomNormal(0.02)). It
    # starts with smaller kernels at the ends of residual branches.
    "gpt2": {
        "vocabulary_size": 50257,
        "num_layers": 12,
        "num_heads": 12,
        "model_dim": 768,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "normalization": "pre",
        "activation": approximate_gelu,
        "use_bias": True,
        "tie_embeddings": True,
        "embedding_scale": 1.0,
        "embeddings_initializer": keras.initializers.RandomNormal(stddev=0.02),
        "kernel_initializer": keras.initializers.RandomNormal(stddev=0.02),
    },
}
