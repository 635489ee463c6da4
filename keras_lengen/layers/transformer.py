"""The block of a Transformer."""

import keras
from keras import ops

from keras_lengen.layers.attention import MultiHeadAttention, with_encoding


@keras.saving.register_keras_serializable(package="keras_lengen")
class TransformerBlock(keras.layers.Layer):
    """Self-attention and a feed-forward network, each with a residual.

    Between them, where wanted, stands attention to another sequence.

    Args:
        num_heads: Number of attention heads; divides the width `M`.
        feedforward_dim: Width of the hidden layer, `None` for `4 * M`.
        dropout: Share dropped of what each part adds, in training.
        attention_dropout: Share dropped of the attention weights.
        encoding: `PositionalEncoding` of the self-attention, or `None`.
        attention: Class used in place of `MultiHeadAttention` for
            self-attention, or `None`.
        cross_attention: Whether there is attention to `memory`.
        cross_encoding: `PositionalEncoding` of that, `None` for none.
        normalization: `"post"`: a norm after each residual, as in the
            original Transformer. `"pre"`: before each part. `None`: none.
        rms_norm: Whether norms are by root mean square, without an offset,
            instead of layer norms.
        activation: Activation of the hidden layer.
        use_bias: `"feedforward"`: biases in the feed-forward network alone.
            `True`: in attention too. `False`: nowhere.
        num_key_value_heads: Number of heads of keys and values, `None` for
            `num_heads`.
        scale_scores: Whether attention divides scores by the square root of
            the heads' width.
        block_size: Number of queries whose scores are held at a time, as in
            `MultiHeadAttention`.
        kernel_initializer: Initializer of all kernels, `None` for truncated
            normal of deviation `1 / sqrt(inputs)` before truncation.
        use_causal_mask: Whether tokens see no later ones.

    Call arguments:
        inputs: `(B, T, M)`.
        attention_mask: Boolean, true where a token may attend to another:
            `(T, T)`, `(B, T, T)` or `(B, 1, T, T)`.
        positions: `(T,)` or `(B, T)`; `None` draws them from the encoding's
            sampler.
        key_positions: Positions of all keys in the cache, with a cache.
        length: Length that the whole sequence will have, for encodings that
            depend on it.
        memory: `(B, S, N)`, the other sequence.
        memory_positions: Its positions, where `cross_encoding` needs them.
        memory_mask: `(B, S)`, true for its real tokens.
        cache: Dict of the caches of the block's attentions, by their names
            `"attention"` and `"cross_attention"`: the call returns its output
            and the cache with the new tokens'. `memory` is `None` where the
            cache holds its keys and values already.
        cache_update_index: Index in the cache of the first new token.
        training: Whether to drop out.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import ALiBi, TransformerBlock
    >>> block = TransformerBlock(num_heads=4, encoding=ALiBi())
    >>> block(ops.ones((2, 10, 32))).shape
    TensorShape([2, 10, 32])

    Reference: Vaswani et al., 2017, section 3.
    https://arxiv.org/abs/1706.03762
    """

    def __init__(
        self,
        num_heads,
        *,
        feedforward_dim=None,
        dropout=0.0,
        attention_dropout=0.0,
        encoding=None,
        attention=None,
        cross_attention=False,
        cross_encoding=None,
        normalization="post",
        rms_norm=False,
        activation="relu",
        use_bias="feedforward",
        num_key_value_heads=None,
        scale_scores=True,
        block_size="auto",
        kernel_initializer=None,
        use_causal_mask=False,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        if use_bias not in ("feedforward", True, False):
            raise ValueError(
                'use_bias must be "feedforward", True or False; '
                f"got {use_bias!r}."
            )
        self.supports_masking = True
        self.num_heads = num_heads
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.encoding = encoding
        self.attention = attention
        self.cross_attention = cross_attention
        self.cross_encoding = cross_encoding
        self.normalization = check_normalization(normalization)
        self.rms_norm = rms_norm
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.num_key_value_heads = num_key_value_heads
        self.scale_scores = scale_scores
        self.block_size = block_size
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.use_causal_mask = use_causal_mask

    def build(self, inputs_shape, memory_shape=None):
        width = inputs_shape[-1]
        if width % self.num_heads:
            raise ValueError(
                f"num_heads={self.num_heads} does not divide the width "
                f"{width} of the model."
            )
        self.attention_layer = self._attention(
            "attention",
            self.attention or MultiHeadAttention,
            self.encoding,
            width,
        )
        self.attention_layer.build(inputs_shape, inputs_shape)
        if self.cross_attention:
            self.cross_attention_layer = self._attention(
                "cross_attention",
                MultiHeadAttention,
                self.cross_encoding,
                width,
            )
            self.cross_attention_layer.build(
                inputs_shape, memory_shape or inputs_shape
            )
        hidden = self.feedforward_dim or 4 * width
        self.hidden_dense = self._dense("hidden", hidden, self.activation)
        self.hidden_dense.build(inputs_shape)
        self.output_dense = self._dense("output", width, None)
        self.output_dense.build((*inputs_shape[:-1], hidden))
        self.dropout_layer = keras.layers.Dropout(
            self.dropout, dtype=self.dtype_policy
        )
        if self.normalization is not None:
            self.attention_norm = self._norm("attention_norm", inputs_shape)
            if self.cross_attention:
                self.cross_attention_norm = self._norm(
                    "cross_attention_norm", inputs_shape
                )
            self.feedforward_norm = self._norm("feedforward_norm", inputs_shape)

    def _attention(self, name, attention, encoding, width):
        return attention(
            self.num_heads,
            width // self.num_heads,
            encoding=encoding,
            dropout=self.attention_dropout,
            use_bias=self.use_bias is True,
            num_key_value_heads=self.num_key_value_heads,
            scale_scores=self.scale_scores,
            block_size=self.block_size,
            kernel_initializer=kernel_initializer(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def _dense(self, name, width, activation):
        return keras.layers.Dense(
            width,
            activation=activation,
            use_bias=self.use_bias is not False,
            kernel_initializer=kernel_initializer(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def _norm(self, name, input_shape):
        norm = norm_layer(self.rms_norm, dtype=self.dtype_policy, name=name)
        norm.build(input_shape)
        return norm

    def call(
        self,
        inputs,
        *,
        attention_mask=None,
        positions=None,
        key_positions=None,
        length=None,
        memory=None,
        memory_positions=None,
        memory_mask=None,
        mask=None,
        inputs_mask=None,
        cache=None,
        cache_update_index=None,
        training=None,
    ):
        if mask is None:
            # Keras' name for it, where there are other tensors than inputs.
            mask = inputs_mask
        if self.cross_attention and memory is None and cache is None:
            raise ValueError(
                "a block with cross_attention needs `memory`, the sequence to "
                "attend to."
            )
        new_cache: dict = {}

        def attend(x):
            return self._cached(
                self.attention_layer,
                new_cache,
                x,
                x,
                query_mask=None if cache is not None else mask,
                value_mask=mask,
                attention_mask=attention_mask,
                use_causal_mask=self.use_causal_mask,
                positions=positions,
                key_positions=key_positions,
                length=length,
                cache=cache and cache["attention"],
                cache_update_index=cache_update_index,
                training=training,
            )

        def cross_attend(x):
            return self._cached(
                self.cross_attention_layer,
                new_cache,
                x,
                x if memory is None else memory,
                query_mask=None if cache is not None else mask,
                value_mask=memory_mask,
                positions=positions,
                key_positions=memory_positions,
                cache=cache and cache["cross_attention"],
                cache_update_index=None if memory is None else 0,
                training=training,
            )

        def feed_forward(x):
            return self.output_dense(self.hidden_dense(x))

        x = ops.cast(inputs, self.compute_dtype)
        x = self._residual(x, attend, "attention_norm", training)
        if self.cross_attention:
            norm = "cross_attention_norm"
            x = self._residual(x, cross_attend, norm, training)
        x = self._residual(x, feed_forward, "feedforward_norm", training)
        return x if cache is None else (x, new_cache)

    def _cached(self, attention, new_cache, *args, cache, **kwargs):
        """Output of an attention, whose cache joins the new one."""
        if cache is None:
            kwargs.pop("cache_update_index")
            return attention(*args, **kwargs)
        output, new_cache[attention.name] = attention(
            *args, cache=cache, **kwargs
        )
        return output

    def make_cache(self, batch_size, length, memory=None):
        """Empty caches of `length` tokens, and of those of `memory`."""
        cache = {
            "attention": self.attention_layer.make_cache(batch_size, length)
        }
        if self.cross_attention:
            cache["cross_attention"] = self.cross_attention_layer.make_cache(
                batch_size, memory.shape[1]
            )
        return cache

    def _residual(self, x, part, norm, training):
        if self.normalization == "pre":
            added = part(getattr(self, norm)(x))
        else:
            added = part(x)
        x = x + self.dropout_layer(added, training=training)
        if self.normalization == "post":
            x = getattr(self, norm)(x)
        return x

    def compute_output_spec(self, inputs, **kwargs):
        output = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        cache = kwargs.get("cache")
        return output if cache is None else (output, cache)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "feedforward_dim": self.feedforward_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "encoding": keras.saving.serialize_keras_object(self.encoding),
            "attention": attention_name(self.attention),
            "cross_attention": self.cross_attention,
            "cross_encoding": keras.saving.serialize_keras_object(
                self.cross_encoding
            ),
            "normalization": self.normalization,
            "rms_norm": self.rms_norm,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "num_key_value_heads": self.num_key_value_heads,
            "scale_scores": self.scale_scores,
            "block_size": self.block_size,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
            "use_causal_mask": self.use_causal_mask,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**with_encoding(with_attention(config)))


def attention_name(attention):
    """The registered name of an attention class, or `None`."""
    return attention and keras.saving.get_registered_name(attention)


def with_attention(config):
    """A layer's config with the name of its attention turned into a class."""
    name = config["attention"]
    attention = name and keras.saving.get_registered_object(name)
    if name and attention is None:
        raise ValueError(
            f"there is no registered class {name!r} for `attention`: decorate "
            "it with keras.saving.register_keras_serializable, and import it "
            "before loading."
        )
    return {**config, "attention": attention}


def norm_layer(rms_norm, **kwargs):
    """A layer norm, or one by root mean square, of the usual epsilon."""
    if rms_norm:
        return keras.layers.RMSNormalization(epsilon=1e-6, **kwargs)
    return keras.layers.LayerNormalization(epsilon=1e-5, **kwargs)


def kernel_initializer(given):
    """A copy of a given initializer, or that of the original Transformer."""
    return fan_in_normal() if given is None else copy_initializer(given)


def copy_initializer(initializer):
    """A copy of an initializer, or the function that is one."""
    if isinstance(initializer, keras.initializers.Initializer):
        return initializer.clone()
    return initializer


def fan_in_normal():
    """Truncated normal of deviation `1 / sqrt(inputs)` before truncation."""
    # Keras scales for the deviation after truncation at two sigma, Haiku, and
    # with it the code of Ruoss et al., 2023, for that before.
    return keras.initializers.VarianceScaling(
        scale=0.87962566103423978**2,
        mode="fan_in",
        distribution="truncated_normal",
    )


def check_normalization(normalization):
    """Returns a valid place of the layer norms, or raises `ValueError`."""
    if normalization not in ("post", "pre", None):
        raise ValueError(
            'normalization must be "post", "pre" or None; '
            f"got {normalization!r}."
        )
    return normalization
