"""What Transformers over tokens have in common."""

import keras
from keras import ops

from keras_lengen.layers.attention import with_encoding
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.transformer import (
    TransformerBlock,
    attention_name,
    check_normalization,
    copy_initializer,
    kernel_initializer,
    norm_layer,
    with_attention,
)

BLOCK_ARGUMENTS = (
    "num_heads",
    "feedforward_dim",
    "dropout",
    "attention_dropout",
    "attention",
    "normalization",
    "rms_norm",
    "activation",
    "use_bias",
    "num_key_value_heads",
    "scale_scores",
    "block_size",
    "kernel_initializer",
)
"""The arguments that a model hands on to all of its blocks."""


class Transformer(keras.Model):
    """Token ids, embedded, through blocks, to logits.

    `TransformerEncoder` documents the arguments.
    """

    causal = False
    """Whether tokens see no later ones."""

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
        attention_dropout=0.0,
        embedding_dropout=None,
        encoding=None,
        attention=None,
        normalization="post",
        rms_norm=False,
        activation="relu",
        use_bias="feedforward",
        num_key_value_heads=None,
        scale_scores=True,
        block_size="auto",
        tie_embeddings=False,
        embedding_scale=None,
        logit_scale=1.0,
        embeddings_initializer=None,
        kernel_initializer=None,
        draw="model",
        **kwargs,
    ):
        # Float positions would otherwise be rounded to the compute dtype.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        if draw not in ("model", "layer"):
            raise ValueError(f'draw must be "model" or "layer"; got {draw!r}.')
        if model_dim % num_heads:
            raise ValueError(
                f"num_heads={num_heads} does not divide model_dim={model_dim}."
            )
        if tie_embeddings and output_size != vocabulary_size:
            raise ValueError(
                "tie_embeddings makes logits of the token ids: output_size "
                f"must be vocabulary_size={vocabulary_size}; "
                f"got {output_size!r}."
            )
        self.vocabulary_size = vocabulary_size
        self.output_size = output_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.model_dim = model_dim
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.embedding_dropout = embedding_dropout
        self.encoding = copy_encoding(encoding or PositionalEncoding())
        self.attention = attention
        self.normalization = check_normalization(normalization)
        self.rms_norm = rms_norm
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.num_key_value_heads = num_key_value_heads
        self.scale_scores = scale_scores
        self.block_size = block_size
        self.tie_embeddings = tie_embeddings
        self.embedding_scale = embedding_scale
        self.logit_scale = logit_scale
        self.embeddings_initializer = keras.initializers.get(
            embeddings_initializer
        )
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.draw = draw
        self.programs: dict = {}

    def _make_layers(self, *, cross_attention=False, cross_encoding=None):
        """Makes and builds all layers; the last step of a constructor."""
        initializer = self.embeddings_initializer
        if initializer is None:
            initializer = keras.initializers.TruncatedNormal(stddev=0.02)
        self.embedding = keras.layers.Embedding(
            self.vocabulary_size,
            self.model_dim,
            # A copy: one instance would start all models alike.
            embeddings_initializer=copy_initializer(initializer),
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.dropout_layer = keras.layers.Dropout(
            self.dropout
            if self.embedding_dropout is None
            else self.embedding_dropout,
            dtype=self.dtype_policy,
        )
        in_attention = None
        if self.encoding.stage != "embeddings":
            in_attention = self.encoding
        self.blocks = [
            TransformerBlock(
                **{name: getattr(self, name) for name in BLOCK_ARGUMENTS},
                encoding=_of_layer(in_attention, layer),
                cross_attention=cross_attention,
                cross_encoding=_of_layer(cross_encoding, layer),
                use_causal_mask=self.causal,
                dtype=self.dtype_policy,
                name=f"block_{layer}",
            )
            for layer in range(self.num_layers)
        ]
        self.final_norm: keras.Layer | None = None
        if self.normalization == "pre":
            self.final_norm = norm_layer(
                self.rms_norm, dtype=self.dtype_policy, name="final_norm"
            )
        self.head: keras.Layer | None = None
        if self.output_size is not None and not self.tie_embeddings:
            self.head = keras.layers.Dense(
                self.output_size,
                use_bias=self.use_bias is not False,
                kernel_initializer=kernel_initializer(self.kernel_initializer),
                dtype="float32",
                name="head",
            )
        # No weight depends on the shape of the inputs.
        self.build((None, None))

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
        if self.head is not None:
            self.head.build(shape)

    def __call__(self, inputs, *args, **kwargs):
        return super().__call__(numbers_as_tensors(inputs), *args, **kwargs)

    def call(self, inputs, training=None):
        inputs = self._unpack(inputs)
        mask = self.padding_mask(inputs)
        positions = inputs.get("positions")
        if positions is None:
            positions = self.sample_positions(inputs, training=training)
        features, _ = self.features(
            inputs["token_ids"],
            self.by_layer(positions),
            mask=mask,
            length=inputs.get("reference_length"),
            training=training,
            **self.memory(inputs, training),
        )
        return self.logits(features)

    def sample_positions(self, inputs, *, training=None):
        """Positions of the tokens, drawn once or, in a list, for every layer.

        Args:
            inputs: Dict as in a call.
            training: Whether to draw them as in training.
        """
        draws = self.num_layers if self.draw == "layer" else 1
        positions = [
            self.encoding.sample_positions(
                inputs["token_ids"],
                lengths=inputs.get("lengths"),
                mask=inputs.get("padding_mask"),
                reference_length=inputs.get("reference_length"),
                training=training,
            )
            for _ in range(draws)
        ]
        return positions if self.draw == "layer" else positions[0]

    def by_layer(self, positions):
        """Positions for every block, of those of the model."""
        if self.draw == "layer" and isinstance(positions, list):
            return positions
        return [positions] * self.num_layers

    def features(
        self,
        token_ids,
        positions,
        *,
        cache=None,
        cache_update_index=None,
        training=None,
        **kwargs,
    ):
        """What the blocks make of tokens, `(B, T, M)`, and the new cache."""
        scale = self.embedding_scale
        x = self.embedding(token_ids) * (
            self.model_dim**0.5 if scale is None else scale
        )
        # With a cache, positions are those of all tokens in it.
        own = [
            _window(of_layer, cache_update_index, token_ids)
            for of_layer in positions
        ]
        if self.encoding.stage == "embeddings":
            x = self.encoding(x, positions=own[0])
        if (
            self.encoding.stage == "embeddings"
            or self.embedding_dropout is not None
        ):
            x = self.dropout_layer(x, training=training)
        new_cache = []
        for layer, block in enumerate(self.blocks):
            if cache is None:
                x = block(x, positions=own[layer], training=training, **kwargs)
                continue
            x, of_layer = block(
                x,
                positions=own[layer],
                key_positions=positions[layer],
                cache=cache[layer],
                cache_update_index=cache_update_index,
                **kwargs,
            )
            new_cache.append(of_layer)
        if self.final_norm is not None:
            x = self.final_norm(x)
        if self.embedding_dropout is not None and self.final_norm is not None:
            x = self.dropout_layer(x, training=training)
        return x, new_cache

    def make_cache(self, batch_size, length, memory=None):
        """Empty keys and values of all blocks, for `features`.

        Args:
            batch_size: Number of sequences.
            length: Number of tokens to hold.
            memory: `(B, S, N)` that blocks attend to, or `None`.
        """
        return [
            block.make_cache(batch_size, length, memory)
            for block in self.blocks
        ]

    def logits(self, features):
        if self.head is not None:
            logits = self.head(features)
        elif self.tie_embeddings:
            table = ops.cast(self.embedding.embeddings, self.compute_dtype)
            logits = ops.matmul(features, ops.transpose(table))
            logits = ops.cast(logits, "float32")
        else:
            return features
        return logits if self.logit_scale == 1 else logits * self.logit_scale

    def _unpack(self, inputs):
        """The inputs as a dict, checked."""
        if not isinstance(inputs, dict):
            inputs = {"token_ids": inputs}
        known = {
            "token_ids",
            "lengths",
            "padding_mask",
            "positions",
            "reference_length",
            *self._further_inputs,
        }
        if (
            "token_ids" not in inputs
            or set(inputs) - known
            or {"lengths", "padding_mask"} <= set(inputs)
        ):
            raise ValueError(
                "inputs are token_ids, at most one of lengths and "
                f"padding_mask, and {', '.join(sorted(known - _OWN))}; "
                f"got {sorted(inputs)}."
            )
        return inputs

    _further_inputs: tuple = ()
    """Names of inputs of a subclass."""

    def memory(self, inputs, training=None):
        """Arguments of the blocks about another sequence."""
        return {}

    def padding_mask(self, inputs):
        """Mask of the padding `(B, T)`, or `None`."""
        if inputs.get("lengths") is None:
            return inputs.get("padding_mask")
        tokens = ops.arange(ops.shape(inputs["token_ids"])[1])
        return ops.less(tokens, ops.reshape(inputs["lengths"], (-1, 1)))

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def compute_output_spec(self, inputs, training=None):
        shape = self._unpack(inputs)["token_ids"].shape
        if self.output_size is None:
            return keras.KerasTensor(
                (*shape, self.model_dim), dtype=self.compute_dtype
            )
        return keras.KerasTensor((*shape, self.output_size), dtype="float32")

    def get_config(self):
        serialize = keras.initializers.serialize
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "output_size": self.output_size,
            "num_layers": self.num_layers,
            "model_dim": self.model_dim,
            **{name: getattr(self, name) for name in BLOCK_ARGUMENTS},
            "embedding_dropout": self.embedding_dropout,
            "encoding": keras.saving.serialize_keras_object(self.encoding),
            "attention": attention_name(self.attention),
            "activation": keras.activations.serialize(self.activation),
            "tie_embeddings": self.tie_embeddings,
            "embedding_scale": self.embedding_scale,
            "logit_scale": self.logit_scale,
            "embeddings_initializer": serialize(self.embeddings_initializer),
            "kernel_initializer": serialize(self.kernel_initializer),
            "draw": self.draw,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**with_encoding(with_attention(config)))


_OWN = {"token_ids", "lengths", "padding_mask"}


def numbers_as_tensors(inputs):
    """Inputs without plain numbers, which Keras refuses: a length for all."""
    if not isinstance(inputs, dict):
        return inputs
    return {
        name: ops.convert_to_tensor(value) if isinstance(value, int) else value
        for name, value in inputs.items()
    }


def _window(positions, index, token_ids):
    """Of the positions of a whole sequence, those of some of its tokens."""
    if index is None:
        return positions
    indices = index + ops.arange(ops.shape(token_ids)[1], dtype="int32")
    return keras.tree.map_structure(
        lambda axis: ops.take(axis, indices, axis=-1), positions
    )


def _of_layer(encoding, layer):
    """What the attention of one block gets of an encoding."""
    if encoding is None or encoding.share_layers or layer == 0:
        return encoding
    return copy_encoding(encoding)


def copy_encoding(encoding):
    """An encoding of the same configuration, without a weight in common."""
    return type(encoding).from_config(encoding.get_config())
