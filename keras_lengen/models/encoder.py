"""Transformer encoder over tokens."""

import keras
from keras import ops

from keras_lengen.layers.attention import with_encoding
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.transformer import (
    TransformerBlock,
    attention_name,
    check_normalization,
    fan_in_normal,
    with_attention,
)


@keras.saving.register_keras_serializable(package="keras_lengen")
class TransformerEncoder(keras.Model):
    """A bidirectional Transformer from token ids to logits.

    Args:
        vocabulary_size: Number of token ids.
        output_size: Number of classes of every output.
        num_layers: Number of blocks.
        num_heads: Number of attention heads; divides `model_dim`.
        model_dim: Width `M` of the model.
        feedforward_dim: Width of the hidden layers, `None` for `4 * M`.
        dropout: Share dropped of what every part of a block adds.
        encoding: `PositionalEncoding`, `None` for no positions. It is a
            template: layers that own weights of it get a copy each.
        attention: Class used in place of `MultiHeadAttention`, or `None`.
        normalization: `"post"`, `"pre"` or `None`: where layer norms stand.
        draw: `"model"`: one draw of positions for all layers, as in the paper
            of Ruoss et al., 2023. `"layer"`: one per layer, as in their code.

    Call arguments:
        inputs: Token ids `(B, T)`, or a dict of `"token_ids"` and, where
            wanted, `"lengths"` (`(B,)`, or a scalar for the whole batch) of
            sequences padded at the end or `"padding_mask"` (`(B, T)`, true
            for real tokens), and `"positions"` (`(T,)` or `(B, T)`, valid
            ones for padding too).
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

    def __init__(
        self,
        *,
        vocabulary_size,
        output_size,
        num_layers,
        num_heads,
        model_dim,
        feedforward_dim=None,
        dropout=0.1,
        encoding=None,
        attention=None,
        normalization="post",
        draw="model",
        **kwargs,
    ):
        # Float positions would otherwise be rounded to the compute dtype.
        super().__init__(autocast=False, **kwargs)
        if draw not in ("model", "layer"):
            raise ValueError(f'draw must be "model" or "layer"; got {draw!r}.')
        if model_dim % num_heads:
            raise ValueError(
                f"num_heads={num_heads} does not divide model_dim={model_dim}."
            )
        if encoding is not None and encoding.causal_only:
            raise ValueError(
                f"{type(encoding).__name__} is for causal attention, but an "
                "encoder's tokens see later ones: choose another encoding."
            )
        self.vocabulary_size = vocabulary_size
        self.output_size = output_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.model_dim = model_dim
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        self.encoding = _copy(encoding or PositionalEncoding())
        self.attention = attention
        self.normalization = check_normalization(normalization)
        self.draw = draw
        self.embedding = keras.layers.Embedding(
            vocabulary_size,
            model_dim,
            embeddings_initializer=keras.initializers.TruncatedNormal(
                stddev=0.02
            ),
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy
        )
        self.blocks = [
            TransformerBlock(
                num_heads,
                feedforward_dim=feedforward_dim,
                dropout=dropout,
                encoding=self._layer_encoding(layer),
                attention=attention,
                normalization=normalization,
                dtype=self.dtype_policy,
                name=f"block_{layer}",
            )
            for layer in range(num_layers)
        ]
        self.final_norm = None
        if normalization == "pre":
            self.final_norm = keras.layers.LayerNormalization(
                epsilon=1e-5, dtype=self.dtype_policy, name="final_norm"
            )
        self.head = keras.layers.Dense(
            output_size,
            kernel_initializer=fan_in_normal(),
            dtype="float32",
            name="head",
        )
        # No weight depends on the shape of the inputs.
        self.build((None, None))

    def _layer_encoding(self, layer):
        """What the attention of one block gets of the encoding."""
        if self.encoding.stage == "embeddings":
            return None
        if self.encoding.share_layers or layer == 0:
            return self.encoding
        return _copy(self.encoding)

    def build(self, input_shape):
        if self.built:
            return
        shape = (None, None, self.model_dim)
        self.embedding.build((None, None))
        if self.encoding.stage == "embeddings":
            self.encoding.build(shape)
        for block in self.blocks:
            block.build(shape)
        if self.final_norm is not None:
            self.final_norm.build(shape)
        self.head.build(shape)

    def call(self, inputs, training=None):
        token_ids, mask, positions = self._unpack(inputs, training)
        x = self.embedding(token_ids) * self.model_dim**0.5
        if self.encoding.stage == "embeddings":
            x = self.encoding(x, positions=positions[0])
            x = self.dropout_layer(x, training=training)
        for block, block_positions in zip(self.blocks, positions, strict=True):
            x = block(
                x, positions=block_positions, mask=mask, training=training
            )
        if self.final_norm is not None:
            x = self.final_norm(x)
        return self.head(x)

    def _unpack(self, inputs, training):
        """Token ids, mask of the padding or `None`, positions per block."""
        if not isinstance(inputs, dict):
            inputs = {"token_ids": inputs}
        unknown = set(inputs) - {
            "token_ids",
            "lengths",
            "padding_mask",
            "positions",
        }
        if unknown or {"lengths", "padding_mask"} <= set(inputs):
            raise ValueError(
                "inputs are token_ids, at most one of lengths and "
                f"padding_mask, and positions; got {sorted(inputs)}."
            )
        token_ids = inputs["token_ids"]
        lengths = inputs.get("lengths")
        mask = inputs.get("padding_mask")
        positions = inputs.get("positions")
        if positions is None:
            draws = self.num_layers if self.draw == "layer" else 1
            positions = [
                self.encoding.sample_positions(
                    token_ids, lengths=lengths, mask=mask, training=training
                )
                for _ in range(draws)
            ]
        else:
            positions = [positions]
        if len(positions) < self.num_layers:
            positions *= self.num_layers
        if lengths is not None:
            tokens = ops.arange(ops.shape(token_ids)[1])
            mask = ops.less(tokens, ops.reshape(lengths, (-1, 1)))
        return token_ids, mask, positions

    def compute_output_spec(self, inputs, training=None):
        if isinstance(inputs, dict):
            inputs = inputs["token_ids"]
        return keras.KerasTensor(
            (*inputs.shape, self.output_size), dtype="float32"
        )

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "output_size": self.output_size,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "model_dim": self.model_dim,
            "feedforward_dim": self.feedforward_dim,
            "dropout": self.dropout,
            "encoding": keras.saving.serialize_keras_object(self.encoding),
            "attention": attention_name(self.attention),
            "normalization": self.normalization,
            "draw": self.draw,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**with_encoding(with_attention(config)))


def _copy(encoding):
    return type(encoding).from_config(encoding.get_config())
