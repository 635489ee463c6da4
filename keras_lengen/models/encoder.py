"""Transformer encoder over token ids."""

import keras

from keras_lengen.models.base import Transformer


@keras.saving.register_keras_serializable(package="keras_lengen")
class TransformerEncoder(Transformer):
    """A bidirectional Transformer that maps token ids to logits.

    Token ids are embedded, pass through `num_layers` Transformer blocks and
    are mapped to the logits of every token by a linear layer.

    Args:
        vocabulary_size: int, at least 1. Number of token ids.
        output_size: int, at least 1. Number of classes; `None`: return the
            features `(B, T, M)` instead of logits.
        num_layers: int, at least 1. Number of Transformer blocks.
        model_dim: int, at least 1. Width `M` of the model; a multiple of
            `num_heads`.
        embedding_dropout: float from 0 to below 1. Dropout rate of the
            embeddings and of the output of the final norm. `None`: `dropout`,
            applied to the embeddings only, and only if an encoding is added to
            them, as in the code of Ruoss et al., 2023.
        encoding: `PositionalEncoding`; `None`: no positional encoding. The
            model copies it; a block that needs its own weights gets its own
            copy. Layers may have different encodings: pass a list with one
            entry for each layer, or a plain function of the number of a layer,
            from 0. An encoding in several entries is one encoding, and
            encodings may share a sampler.
        attention: `Recipe` of the self-attention of a block, a subclass of
            `MultiHeadAttention` with its options, such as
            `Recipe(MultiHeadAttention, sliding_window=16)`; the class alone;
            or `None` for `MultiHeadAttention`. Layers may have different ones:
            pass a list with one entry for each layer, or a plain function of
            the number of a layer, from 0.
        feedforward: `Recipe` of the feed-forward network of a block, such as
            `Recipe(FeedForward, activation="silu", gated=True)`; the class
            alone; or `None` for `FeedForward`. Layers may have different ones,
            as for `attention`.
        tie_embeddings: bool. Whether the output layer shares its weights with
            the embedding layer; requires `output_size == vocabulary_size`.
        embedding_scale: float. Factor of the embeddings; `None`: `sqrt(M)`.
        logit_scale: float. Factor of the logits.
        embeddings_initializer: Initializer of the embeddings; `None`: a
            truncated normal with standard deviation 0.02.
        share_positions: `"model"`: all layers with the same sampler share one
            draw of positions, as in the paper of Ruoss et al., 2023.
            `"layer"`: one draw for each layer, as in their code.
        **kwargs: Arguments of `TransformerBlock` that all blocks share:
            `num_heads`, `feedforward_dim`, `dropout`, `normalization`,
            `rms_norm`, `norm_epsilon`, `use_bias`, `num_key_value_heads` and
            `kernel_initializer`. The last block is followed by another norm if
            `normalization` is `"pre"`. `use_bias` and `kernel_initializer` also
            concern the output layer.

    Call arguments:
        inputs: Integer token ids `(B, T)`, or a dict with the entries:
            `"token_ids"`; optionally either `"lengths"`, int `(B,)` or scalar,
            for sequences padded at the end, or `"padding_mask"`, bool
            `(B, T)`, true for real tokens; optionally `"positions"`, `(T,)`
            or `(B, T)`, which must be valid for padding too; optionally
            `"reference_length"`, `(B,)` or scalar, the sequence length for
            interpolation and for encodings that depend on the length, if it
            is not the number of tokens; optionally `"segment_ids"`, int
            `(B, T)`, the document of each token, if rows are packed with
            several documents, which are then computed as in rows of their
            own, as in `MultiHeadAttention`. It excludes `"reference_length"`.
        training: bool. Whether to apply dropout and to draw positions as in
            training.

    Returns:
        float32 logits `(B, T, output_size)`.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedRoPE
    >>> from keras_lengen.models import TransformerEncoder, presets
    >>> model = TransformerEncoder(
    ...     vocabulary_size=3, output_size=2, encoding=RandomizedRoPE(),
    ...     **presets["ruoss"])
    >>> model.count_params()
    248962
    >>> model(ops.ones((2, 10), "int32")).shape
    TensorShape([2, 10, 2])

    Reference: Ruoss et al., 2023, section 4.
    https://arxiv.org/abs/2305.16843
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        classes = {
            "encoding": [type(each) for each in self.list_encodings()],
            "attention": [each.layer for each in self.list_attentions()],
        }
        for argument, of_layers in classes.items():
            for cls in of_layers:
                if cls.causal_only:
                    raise ValueError(
                        f"{argument}={cls.__name__} is for causal attention, "
                        "but in an encoder, tokens attend to later tokens: "
                        f"choose another {argument}."
                    )
        self._make_layers()
