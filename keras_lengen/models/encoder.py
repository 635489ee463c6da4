"""Transformer encoder over tokens."""

import keras

from keras_lengen.layers.encodings.base import check_encoding
from keras_lengen.models.base import Transformer


@keras.saving.register_keras_serializable(package="keras_lengen")
class TransformerEncoder(Transformer):
    """A bidirectional Transformer from token ids to logits.

    Args:
        vocabulary_size: Number of token ids.
        output_size: Number of classes of every output, `None` to return the
            features that they would be computed from.
        num_layers: Number of blocks.
        num_heads: Number of attention heads; divides `model_dim`.
        model_dim: Width `M` of the model.
        feedforward_dim: Width of the hidden layers, `None` for `4 * M`.
        dropout: Share dropped of what every part of a block adds.
        attention_dropout: Share dropped of the attention weights.
        embedding_dropout: Share dropped of the embeddings and of what the
            final norm returns; `None` for `dropout`, of the embeddings alone
            and only where an encoding is added to them, as in the code of
            Ruoss et al., 2023.
        encoding: `PositionalEncoding`, `None` for no positions. It is a
            template: layers that own weights of it get a copy each.
        attention: Class used in place of `MultiHeadAttention`, or `None`.
        normalization: `"post"`, `"pre"` or `None`: where norms stand.
        rms_norm: Whether norms are by root mean square.
        activation: Activation of the hidden layers.
        use_bias: `"feedforward"`: biases everywhere but in attention. `True`:
            there too. `False`: nowhere.
        num_key_value_heads: Number of heads of keys and values, each shared
            by a group of query heads; `None` for `num_heads`.
        scale_scores: Whether attention divides scores by the square root of
            the heads' width.
        chunk_size: Number of queries whose scores attention holds at a time,
            as in `MultiHeadAttention`.
        tie_embeddings: Whether logits are products with the embeddings.
        embedding_scale: Factor of the embeddings, `None` for `sqrt(M)`.
        logit_scale: Factor of the logits.
        embeddings_initializer: Initializer of the embeddings, `None` for a
            truncated normal of deviation 0.02.
        kernel_initializer: Initializer of the kernels, `None` for a truncated
            normal of deviation `1 / sqrt(inputs)` before truncation.
        draw: `"model"`: one draw of positions for all layers, as in the paper
            of Ruoss et al., 2023. `"layer"`: one per layer, as in their code.

    Call arguments:
        inputs: Token ids `(B, T)`, or a dict of `"token_ids"` and, where
            wanted, `"lengths"` (`(B,)`, or a scalar for the whole batch) of
            sequences padded at the end or `"padding_mask"` (`(B, T)`, true
            for real tokens), `"positions"` (`(T,)` or `(B, T)`, valid ones
            for padding too), and `"reference_length"` (`(B,)` or a scalar),
            the length that interpolation and encodings that depend on it go
            by, where that is not the number of tokens.
        training: Whether to drop out, and to draw positions as in training.

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

    def __init__(self, *, encoding=None, **kwargs):
        check_encoding("encoding", encoding)
        if encoding is not None and encoding.causal_only:
            raise ValueError(
                f"encoding={type(encoding).__name__} is for causal attention, "
                "but an encoder's tokens see later ones: choose another "
                "encoding."
            )
        super().__init__(encoding=encoding, **kwargs)
        self._make_layers()
