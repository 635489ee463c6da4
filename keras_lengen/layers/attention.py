"""Multi-head attention that takes a positional encoding."""

import functools

import keras
from keras import ops

from keras_lengen.layers.encodings.base import PositionalEncoding


@keras.saving.register_keras_serializable(package="keras_lengen")
class MultiHeadAttention(keras.layers.Layer):
    """Multi-head attention with a positional encoding.

    Used like `keras.layers.MultiHeadAttention`, with one hook more: the
    encoding rotates queries and keys and biases the scores,
    `rotated(q) . rotated(k) / sqrt(key_dim) + bias`.

    Scores and softmax are float32 whatever the dtype policy. A causal mask
    compares indices, never positions; where there are fewer queries than
    keys, they are the last ones.

    Args:
        num_heads: Number of heads.
        key_dim: Width of a head's queries and keys.
        encoding: `PositionalEncoding` that rotates or biases, or `None`. An
            encoding of embeddings is added before attention and has no place
            here.
        value_dim: Width of a head's values, `None` for `key_dim`.
        dropout: Share of the attention weights dropped in training.
        use_bias: Whether the projections have biases.
        output_dim: Width of the output, `None` for that of the query.
        kernel_initializer: Initializer of the projections.
        bias_initializer: Initializer of their biases.
        seed: Integer seed of the dropout, or `None`.

    Call arguments:
        query: `(B, T, M)`.
        value: `(B, S, M)`.
        key: `(B, S, M)`, `None` for `value`.
        attention_mask: Boolean, true where a query may attend to a key:
            `(T, S)`, `(B, T, S)` or `(B, H, T, S)`.
        use_causal_mask: Whether queries see no later keys.
        return_attention_scores: Whether to return the attention weights
            `(B, H, T, S)` too.
        positions: Positions of the queries, `(T,)` or `(B, T)`, valid ones for
            padding too; `None` draws them from the encoding's sampler.
        key_positions: Positions of the keys; `None` for those of the queries
            in self-attention, drawn otherwise.
        length: Length that the whole sequence will have, `(B,)` or a scalar,
            for encodings that depend on it; `None` for the number of keys.
        training: Whether to drop out, and to draw positions as in training.

    Padding given by Keras masks is excluded from the keys and from the
    numbering of the tokens.

    Raises:
        ValueError: If an argument is out of range, the encoding belongs to
            another stage, or it is for causal attention and neither
            `use_causal_mask` nor an `attention_mask` is given.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import MultiHeadAttention, RandomizedRoPE
    >>> encoding = RandomizedRoPE(max_position=2048)
    >>> attention = MultiHeadAttention(4, 8, encoding=encoding)
    >>> x = ops.ones((2, 10, 32))
    >>> attention(x, x, use_causal_mask=True).shape
    TensorShape([2, 10, 32])

    Reference: Vaswani et al., 2017, section 3.2.
    https://arxiv.org/abs/1706.03762
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        *,
        encoding=None,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        output_dim=None,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        seed=None,
        **kwargs,
    ):
        # Float positions would otherwise be rounded to the compute dtype.
        super().__init__(autocast=False, **kwargs)
        for name, number in (("num_heads", num_heads), ("key_dim", key_dim)):
            if not isinstance(number, int) or number < 1:
                raise ValueError(
                    f"{name} must be a positive integer; got {number!r}."
                )
        if encoding is not None and encoding.stage == "embeddings":
            raise ValueError(
                f"{type(encoding).__name__} is added to the embeddings and "
                "does nothing in attention: apply it to the input of the "
                "first block."
            )
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim or key_dim
        self.encoding = PositionalEncoding() if encoding is None else encoding
        self.dropout = dropout
        self.use_bias = use_bias
        self.output_dim = output_dim
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.seed = seed
        self.dropout_layer = keras.layers.Dropout(
            dropout, seed=seed, dtype="float32"
        )

    def build(self, query_shape, value_shape, key_shape=None):
        key_shape = value_shape if key_shape is None else key_shape
        head_width = self.num_heads * self.key_dim
        self.query_dense = self._dense("query", head_width, query_shape)
        self.key_dense = self._dense("key", head_width, key_shape)
        value_width = self.num_heads * self.value_dim
        self.value_dense = self._dense("value", value_width, value_shape)
        self.output_dense = self._dense(
            "attention_output",
            self.output_dim or query_shape[-1],
            (*query_shape[:-1], value_width),
        )
        if not self.encoding.built:
            heads = (self.num_heads, self.key_dim)
            self.encoding.build(
                (*query_shape[:2], *heads), (*key_shape[:2], *heads)
            )

    def _dense(self, name, width, input_shape):
        dense = keras.layers.Dense(
            width,
            use_bias=self.use_bias,
            # A copy: one instance would start all projections alike.
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self.bias_initializer,
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build(input_shape)
        return dense

    def __call__(self, query, value, key=None, **kwargs):
        # Keras turns every array into a tensor of its own; self-attention is
        # known by being given one and the same tensor.
        if hasattr(query, "__array__") and not ops.is_tensor(query):
            array, query = query, ops.convert_to_tensor(query)
            value = query if value is array else value
            key = query if key is array else key
        if key is not None:
            kwargs["key"] = key
        return super().__call__(query, value, **kwargs)

    def call(
        self,
        query,
        value,
        key=None,
        *,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        positions=None,
        key_positions=None,
        length=None,
        training=None,
    ):
        key = value if key is None else key
        if value_mask is None:
            value_mask = key_mask
        if self.encoding.causal_only and not (
            use_causal_mask or attention_mask is not None
        ):
            raise ValueError(
                f"{type(self.encoding).__name__} is for causal attention, "
                "where no query sees a later key: set use_causal_mask, or "
                "choose another encoding."
            )
        padded = value_mask is not None
        if padded and length is None and self.encoding.uses_length:
            length = ops.sum(ops.cast(value_mask, "int32"), axis=-1)
        positions, key_positions = self._positions(
            query,
            key,
            positions,
            key_positions,
            query_mask=query_mask,
            key_mask=value_mask,
            training=training,
        )
        inputs = query
        query, key, value = self._project(query, key, value)
        scores = self._scores(
            query,
            key,
            positions,
            key_positions,
            inputs=inputs,
            length=length,
            causal=use_causal_mask,
        )
        mask = _joint_mask(
            scores, attention_mask, value_mask, causal=use_causal_mask
        )
        weights = self._weights(scores, mask)
        dropped = self.dropout_layer(weights, training=training)
        dropped = ops.cast(dropped, self.compute_dtype)
        output = ops.einsum("bhts,bshd->bthd", dropped, value)
        output = ops.reshape(
            output,
            (*ops.shape(output)[:2], self.num_heads * self.value_dim),
        )
        output = self.output_dense(output)
        return (output, weights) if return_attention_scores else output

    def _weights(self, scores, mask):
        """Weights of the values, float32 `(B, H, T, S)`."""
        if mask is not None:
            # Below any bias, and finite: a query without keys gives numbers,
            # not NaN.
            scores = ops.where(mask, scores, -1e30)
        # Of one key, for which Keras warns of a mistake.
        if scores.shape[-1] == 1:
            return ops.ones_like(scores)
        return ops.softmax(scores, axis=-1)

    def _positions(
        self,
        query,
        key,
        positions,
        key_positions,
        *,
        query_mask,
        key_mask,
        training,
    ):
        sample = self.encoding.sample_positions
        if key is query:
            if positions is None:
                positions = sample(query, mask=query_mask, training=training)
            if key_positions is None:
                key_positions = positions
        if positions is None:
            positions = sample(query, mask=query_mask, training=training)
        if key_positions is None:
            key_positions = sample(key, mask=key_mask, training=training)
        return positions, key_positions

    def _project(self, query, key, value):
        """Queries, keys and values `(B, T or S, H, width)`."""
        if query is key and key is value and not self.use_bias:
            # One product in place of three narrow ones.
            denses = (self.query_dense, self.key_dense, self.value_dense)
            kernel = ops.concatenate([dense.kernel for dense in denses], -1)
            inputs = ops.cast(query, self.compute_dtype)
            width = self.num_heads * self.key_dim
            query, key, value = ops.split(
                ops.matmul(inputs, ops.cast(kernel, self.compute_dtype)),
                [width, 2 * width],
                axis=-1,
            )
        else:
            query = self.query_dense(query)
            key = self.key_dense(key)
            value = self.value_dense(value)
        return (
            self._split_heads(query, self.key_dim),
            self._split_heads(key, self.key_dim),
            self._split_heads(value, self.value_dim),
        )

    def _split_heads(self, features, width):
        shape = ops.shape(features)[:2]
        return ops.reshape(features, (*shape, self.num_heads, width))

    def _scores(
        self, query, key, positions, key_positions, *, inputs, length, causal
    ):
        """Scores before the masks, float32 `(B, H, T, S)`.

        Beside the projected queries and keys come the `inputs` of the queries,
        for other rules of attention.
        """
        bias = self.encoding.attention_bias(
            query, key, positions, key_positions, causal=causal
        )
        query, key = self.encoding.rotate(
            query, key, positions, key_positions, length=length
        )
        query = ops.cast(query, "float32") * self.key_dim**-0.5
        key = ops.cast(key, "float32")
        scores = ops.einsum("bthd,bshd->bhts", query, key)
        return scores if bias is None else scores + bias

    def compute_mask(self, query, mask=None):
        return mask

    def compute_output_spec(self, query, value, key=None, **kwargs):
        width = self.output_dim or query.shape[-1]
        output = keras.KerasTensor(
            (*query.shape[:-1], width), dtype=self.compute_dtype
        )
        if not kwargs.get("return_attention_scores"):
            return output
        shape = (query.shape[0], self.num_heads, query.shape[1])
        return output, keras.KerasTensor(
            (*shape, value.shape[1]), dtype="float32"
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "encoding": keras.saving.serialize_keras_object(self.encoding),
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "output_dim": self.output_dim,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
            "bias_initializer": keras.initializers.serialize(
                self.bias_initializer
            ),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**with_encoding(config))


def with_encoding(config):
    """A layer's config with its encoding turned back into a layer."""
    return {
        **config,
        "encoding": keras.saving.deserialize_keras_object(config["encoding"]),
    }


def _joint_mask(scores, attention_mask, key_mask, *, causal):
    """What all masks allow, broadcastable to `(B, H, T, S)`, or `None`."""
    masks = []
    if attention_mask is not None:
        mask = ops.cast(attention_mask, "bool")
        # Without an axis of heads.
        masks.append(ops.expand_dims(mask, 1) if len(mask.shape) == 3 else mask)
    if key_mask is not None:
        masks.append(key_mask[:, None, None, :])
    if causal:
        tokens, keys = ops.shape(scores)[-2:]
        last = ops.expand_dims(ops.arange(tokens), -1) + (keys - tokens)
        masks.append(ops.arange(keys) <= last)
    return functools.reduce(ops.logical_and, masks) if masks else None
