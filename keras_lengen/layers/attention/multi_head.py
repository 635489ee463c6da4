"""Multi-head attention with a positional encoding."""

import math
from typing import Any, Literal, cast

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    Boolean,
    Choice,
    Initializer,
    Integer,
    Number,
    Optional,
    Seed,
    WithArguments,
)
from keras_lengen.checks.inputs import NamedInputs, check_tensors
from keras_lengen.layers.attention.cache import (
    Cache,
    CachedKeys,
    update_cache,
)
from keras_lengen.layers.attention.chunks import (
    ChunkSize,
    Tensors,
    attend_in_chunks,
)
from keras_lengen.layers.attention.fused import attend_fused, is_fused
from keras_lengen.layers.attention.inputs import (
    Context,
    find_output_spec,
    find_width,
    read_inputs,
)
from keras_lengen.layers.attention.keras_weights import load_keras_weights
from keras_lengen.layers.attention.masks import join_masks, log_visible
from keras_lengen.layers.attention.windows import (
    KEY_AXES,
    Window,
    join_keys,
    pack_tokens,
    show_window,
    split_keys,
    take_tokens,
)
from keras_lengen.layers.drawing import DrawingLayer, Dropout
from keras_lengen.layers.encodings.base import PositionalEncoding, pass_on
from keras_lengen.layers.encodings.distances import HIDDEN
from keras_lengen.layers.encodings.nope import EncodingOrNoPE
from keras_lengen.layers.part_policies import PartPolicies
from keras_lengen.types import Positions, Shape, Size, Tensor, TensorLike

DIRECT_PAIRS = 2**22
"""Largest number of pairs of queries and keys that `"auto"` computes without
chunks."""

CHUNK_PAIRS = 2**21
"""Largest number of pairs of queries and keys in a chunk of `"auto"`."""

WINDOW_CHUNKS = (256, 1024)
"""Smallest and largest number of queries in a chunk of `"auto"` if chunks read
only the keys in a sliding window."""


@keras.saving.register_keras_serializable(package="keras_lengen")
class MultiHeadAttention(
    WithArguments, NamedInputs, CachedKeys, PartPolicies, DrawingLayer
):
    """Multi-head attention with a positional encoding.

    It is used like `keras.layers.MultiHeadAttention`. In addition, the
    encoding rotates queries and keys or adds a bias to the scores,
    `rotated(q) . rotated(k) / sqrt(key_dim) + bias`.

    Scores and softmax are float32 with every dtype policy. A causal mask
    compares indices of tokens, never positions.

    Differs from Keras: if there are fewer queries than keys, a causal mask
    treats the queries as the last tokens, which is right when a sequence
    continues after earlier keys; Keras treats them as the first tokens. If
    there are more queries than keys, a causal mask raises an error, because
    the first queries would see no key. Masks given by Keras (`_keras_mask`)
    exclude keys, but no queries.

    Args:
        num_heads: int, at least 1. Number of attention heads `H`.
        key_dim: int, at least 1. Width of the queries and keys of a head.
        encoding: `PositionalEncoding` that rotates queries and keys or adds a
            bias, or `None` for none. An encoding of the embeddings is not
            allowed, because it is added before attention.
        value_dim: int, at least 1. Width of the values of a head, or `None`
            for `key_dim`.
        dropout: float from 0 to below 1. Dropout rate of the attention
            weights.
        use_bias: bool, whether the projections have biases.
        output_dim: int, at least 1. Width of the output, or `None` for the
            width of the query.
        num_key_value_heads: int, at least 1, that divides `num_heads`. Number
            of heads of keys and values, each shared by a group of query heads;
            `None` for `num_heads`.
        scale_scores: bool, whether scores are divided by `sqrt(key_dim)`. If
            not, the initial kernel of the query projection is divided by it,
            as in T5.
        score_factor: str or `None`. `"head"`: products of queries and keys are
            multiplied by a learned number of each head, at first 1, before
            the bias is added. `"log_length"`: scores with their bias are
            multiplied by `s * log(n)`, where `s` is a learned number of each
            head and `n` the number of keys that neither a mask nor the
            encoding hides, so that attention does not get flatter in longer
            sequences (scalable softmax).
        train_length: int, at least 2, or `None`. Longest length in training:
            in evaluation, scores with their bias are multiplied by
            `log(n) / log(train_length)` for queries that see `n` keys, more
            than `train_length`. It has no weights and changes no training.
            Not together with `score_factor="log_length"`.
        logit_soft_cap: float above 0 or `None`. With it, products of queries
            and keys, after `scale_scores` and the factor of a head, become
            `logit_soft_cap * tanh(product / logit_soft_cap)`, before the bias
            is added and before masks.
        use_query_key_norm: bool, whether RMS normalization is applied to the
            queries and keys of each head before they are rotated, each with a
            learned scale `(key_dim,)` that the heads share.
        norm_epsilon: float above 0. Number added to the mean square in that
            normalization.
        use_gate: bool, whether the result of each head is multiplied by a
            gate, the sigmoid of a linear map of the query, before the output
            projection.
        use_sinks: bool, whether each head has a learned number `c` that takes
            part in the softmax like the score of a further key without a
            value: weights are `exp(score) / (exp(c) + sum(exp(scores)))`, and
            their sum is less than 1.
        sliding_window: int, at least 1, or `None`. Query `i` sees the keys
            `i - sliding_window + 1 .. i` with a causal mask, and otherwise
            those with `|i - j| < sliding_window`. These are indices of real
            tokens, never positions. In chunks, only the keys that a chunk can
            see are read, so that time grows with `T` and not with its square,
            unless there is an `attention_mask`, the tokens are those of two
            sequences, or the encoding counts all keys.
        sink_tokens: int, at least 0. Number of first tokens of the sequence
            that stay visible outside of the window.
        chunk_size: Number of queries whose scores are in memory at a time, a
            positive int. `None`: all queries. `"auto"`: all queries up to
            2,048 x 2,048 pairs of tokens and fewer for longer sequences, if
            their length is known when the model is traced.
        fused: bool or `"auto"`. Whether kernels compute attention that keep
            scores, biases, masks and dropout in the fast memory of a TPU, with
            JAX. They need an encoding without a bias, or with one that is a
            function of two positions and up to 128 numbers per head
            (`BiasEncoding.bias_of_pair`), one device, and no `attention_mask`,
            cache, attention weights to return, scalable softmax,
            `train_length`, soft cap, sinks or window. `"auto"` uses them where
            possible, `True` raises an error elsewhere, and `False` never uses
            them. With them, dropout drops other weights than without.
        kernel_initializer: Initializer of the projections.
        bias_initializer: Initializer of the biases of the projections.
        seed: int from 0 to `2 ** 31 - 1`, seed of the dropout, or `None`.

    Call arguments:
        query: Float tensor `(B, T, M)`.
        value: Float tensor `(B, S, M)`.
        key: Float tensor `(B, S, M)`, or `None` for `value`.
        attention_mask: Boolean tensor `(T, S)`, `(B, T, S)` or `(B, H, T, S)`,
            true where a query may attend to a key; or `None`. All masks may
            also be integers 0 and 1; floats, such as numbers that other
            libraries add to scores, raise an error.
        use_causal_mask: bool, whether queries attend to no later keys.
        return_attention_scores: bool, whether to return the attention weights
            too, float32 `(B, H, T, S)`.
        positions: Positions of the queries, tensor `(T,)` or `(B, T)`; padding
            needs valid positions too. `None` takes them from the encoding's
            sampler.
        key_positions: Positions of the keys, tensor `(S,)` or `(B, S)`. `None`
            takes, in self-attention, the positions of the queries and
            otherwise positions from the sampler. If the sampler draws, give
            the positions of other keys, because the distance between queries
            and keys would be random.
        self_attention: bool, whether the keys are the queries' own tokens.
            `None`: they are if `query` and `key`, or `query` and `value`, are
            the same tensor.
        length: Length of the whole sequence in tokens, a number or a tensor
            `()` or `(B,)`, for encodings that depend on it. `None`: the number
            of real keys.
        cache: Pair of keys and values of a whole sequence, `(B, S, heads,
            width)` each, as `make_cache` makes it; or `None`. With a
            `sliding_window`, it has fewer entries, the keys that later tokens
            can see, and needs `use_causal_mask`. The call writes the keys and
            values of the new tokens to it and returns it as the last
            result. `positions` are then those of the new tokens, and
            `None` takes them from `key_positions`; `key_positions` and the
            mask of the keys are those of all `S` entries. Queries also attend
            to entries that are not yet written, unless `use_causal_mask` or a
            mask hides them.
        cache_update_index: int or scalar integer tensor, at least 0. Index in
            the cache of the first new token; all new tokens must fit behind
            it. `None`: the call uses the cache without changing it and does
            not read `value`.
        training: bool or `None`, whether to apply dropout and to draw
            positions as in training.

    Padding given by Keras masks is excluded from the keys, and real tokens are
    numbered without it.

    Returns:
        Float tensor `(B, T, output_dim)` in the compute dtype; or a tuple of
        it and, where requested, the attention weights and the cache.

    With chunks of queries, the results and gradients are the same. The
    backward pass computes the scores again instead of keeping them, so memory
    grows with `T` and not with its square. Dropout drops other weights than
    without chunks. With `return_attention_scores`, there are no chunks.

    If the layer, or a model of this library, is created in a
    `keras.RematScope`, the backward pass repeats its random draws. Create
    other models that contain the layer, functional ones included, outside of
    the scope. In the scope, Keras would recompute the whole model, which fails
    in a TensorFlow graph. Elsewhere the recomputation draws again, so that
    gradients belong to another dropout and, unless positions are given, to
    other positions. `keras.remat` of a function that calls the layer does the
    same.

    Raises:
        ValueError: If an argument is out of range; if the encoding is one of
            embeddings or was built for other heads; if the encoding is for
            causal attention and neither `use_causal_mask` nor an
            `attention_mask` is given; if positions are missing that only the
            caller knows; if tensors do not fit each other. If sizes are known
            only when a compiled program runs, the program ends with an
            assertion; under XLA, the output is NaN.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import MultiHeadAttention, RandomizedRoPE
    >>> encoding = RandomizedRoPE(max_position=2048)
    >>> attention = MultiHeadAttention(4, 8, encoding=encoding)
    >>> x = ops.ones((2, 10, 32))
    >>> attention(x, x, use_causal_mask=True).shape
    TensorShape([2, 10, 32])

    It has two inputs, `query` and `value`. In `keras.Sequential`, where every
    layer has one, use a layer that passes its input as both:

    >>> import keras
    >>> class SelfAttention(keras.layers.Layer):
    ...     def __init__(self, attention, **kwargs):
    ...         super().__init__(**kwargs)
    ...         self.attention = attention
    ...
    ...     def build(self, shape):
    ...         self.attention.build(shape, shape)
    ...
    ...     def call(self, x):
    ...         return self.attention(x, x)
    >>> model = keras.Sequential([SelfAttention(MultiHeadAttention(4, 8))])
    >>> model(x).shape
    TensorShape([2, 10, 32])

    Reference: Vaswani et al., 2017, section 3.2.
    https://arxiv.org/abs/1706.03762
    Factor of each head: Wang et al., 2024. https://arxiv.org/abs/2404.12224
    Scalable softmax: Nakanishi, 2025. https://arxiv.org/abs/2501.19399
    Trained length: Puvvada et al., 2025 (SWAN-GPT).
    https://arxiv.org/abs/2504.08719
    Soft cap: Gemma Team, 2024, section 2. https://arxiv.org/abs/2408.00118
    Normalization: Henry et al., 2020.
    https://arxiv.org/abs/2010.04245
    Learned sinks: OpenAI, 2025 (gpt-oss). https://arxiv.org/abs/2508.10925
    Gate: Qiu et al., 2025. https://arxiv.org/abs/2505.06708
    Sliding window: Beltagy et al., 2020. https://arxiv.org/abs/2004.05150
    Sink tokens: Xiao et al., 2024. https://arxiv.org/abs/2309.17453
    """

    causal_only = False
    """Whether the layer works as causal attention only."""

    unused_options: tuple[str, ...] = ()
    """Names of the options of scores and windows that the layer refuses."""

    num_heads = Integer(example=4)
    key_dim = Integer(example=6)
    encoding = EncodingOrNoPE()
    value_dim = Optional(Integer(example=6))
    dropout = Number(0, below=1, example=0.5)
    use_bias = Boolean()
    output_dim = Optional(Integer(example=6))
    num_key_value_heads = Optional(Integer(example=1))
    scale_scores = Boolean()
    score_factor = Choice("head", "log_length", None)
    train_length = Optional(Integer(2, example=3))
    logit_soft_cap = Optional(Number(above=0, example=0.5))
    use_query_key_norm = Boolean()
    norm_epsilon = Number(above=0, example=0.1)
    use_gate = Boolean()
    use_sinks = Boolean()
    sliding_window = Optional(Integer(example=3))
    sink_tokens = Integer(0, example=1)
    chunk_size = ChunkSize(example=3)
    fused = Choice("auto", True, False)
    kernel_initializer = Initializer(example="he_normal")
    bias_initializer = Initializer(example="ones")
    seed = Seed()

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        *,
        encoding: PositionalEncoding | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_dim: int | None = None,
        num_key_value_heads: int | None = None,
        scale_scores: bool = True,
        score_factor: Literal["head", "log_length"] | None = None,
        train_length: int | None = None,
        logit_soft_cap: float | None = None,
        use_query_key_norm: bool = False,
        norm_epsilon: float = 1e-6,
        use_gate: bool = False,
        use_sinks: bool = False,
        sliding_window: int | None = None,
        sink_tokens: int = 0,
        chunk_size: int | Literal["auto"] | None = "auto",
        fused: Literal["auto"] | bool = "auto",
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        # Float positions would otherwise be rounded to the compute dtype.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.assign(locals())
        self.value_width = self.value_dim or self.key_dim
        if self.encoding.stage == "embeddings":
            raise ValueError(
                f"encoding={type(encoding).__name__} is added to the "
                "embeddings and does nothing in attention: apply it to the "
                "input of the first block."
            )
        check_head_groups(self.num_heads, self.num_key_value_heads)
        self._check_options()
        self.dropout_layer = Dropout(self.dropout, seed=seed, dtype="float32")

    def _check_options(self) -> None:
        """Raises `ValueError` for options that have no use."""
        for name in self.unused_options:
            value = getattr(self, name)
            if value:
                raise ValueError(
                    f"{type(self).__name__} has no use for {name}={value!r}, "
                    "because its weights follow another rule: leave "
                    f"{name} out."
                )
        if self.train_length is not None and self.score_factor == "log_length":
            raise ValueError(
                'score_factor="log_length" and train_length='
                f"{self.train_length} both scale scores by the number of keys: "
                "leave one of them out."
            )

    def build(
        self,
        query_shape: Shape,
        value_shape: Shape,
        key_shape: Shape | None = None,
    ) -> None:
        key_shape = value_shape if key_shape is None else key_shape
        self.input_widths = {
            "query": query_shape[-1],
            "key": key_shape[-1],
            "value": value_shape[-1],
        }
        heads = self.num_heads
        key_heads = self.num_key_value_heads or heads
        self.query_dense = self._make_dense(
            "query",
            heads * self.key_dim,
            query_shape,
            scale=1 if self.scale_scores else self.key_dim**-0.5,
        )
        self.key_dense = self._make_dense(
            "key", key_heads * self.key_dim, key_shape
        )
        self.value_dense = self._make_dense(
            "value", key_heads * self.value_width, value_shape
        )
        if self.use_gate:
            self.gate_dense = self._make_dense(
                "gate", heads * self.value_width, query_shape
            )
        self.output_dense = self._make_dense(
            "attention_output",
            self.output_dim or find_width(query_shape),
            (*query_shape[:-1], heads * self.value_width),
        )
        self._add_score_weights()
        head = (heads, self.key_dim)
        if self.encoding.built:
            self.encoding.check_widths((*query_shape[:2], *head))
        else:
            self.encoding.build(
                (*query_shape[:2], *head), (*key_shape[:2], *head)
            )
        self.settle_policies()

    def _add_score_weights(self) -> None:
        """Creates the weights of the options of scores."""
        heads = self.num_heads
        if self.score_factor is not None:
            start = {"head": 1.0, "log_length": 1 / _MEAN_LOG}
            self.factor = self.add_weight(
                name="score_factor",
                shape=(heads, 1, 1),
                initializer=keras.initializers.Constant(
                    start[self.score_factor]
                ),
                autocast=False,
            )
        if self.use_query_key_norm:
            self.query_scale, self.key_scale = (
                self.add_weight(
                    name=f"{name}_scale",
                    shape=(self.key_dim,),
                    initializer="ones",
                    autocast=False,
                )
                for name in ("query", "key")
            )
        if self.use_sinks:
            self.sinks = self.add_weight(
                name="sinks",
                shape=(heads, 1, 1),
                initializer=keras.initializers.RandomNormal(stddev=0.02),
                autocast=False,
            )

    def _make_dense(
        self, name: str, width: int, input_shape: Shape, scale: float = 1
    ) -> keras.layers.Dense:
        initializer = self.kernel_initializer
        if isinstance(initializer, keras.initializers.Initializer):
            # A copy, because one instance would give all projections the same
            # initial values.
            initializer = initializer.clone()

        def scaled(shape: Shape, dtype: Any = None) -> Tensor:
            return initializer(shape, dtype) * scale

        with self.parts_scope():
            dense = keras.layers.Dense(
                width,
                use_bias=self.use_bias,
                kernel_initializer=initializer if scale == 1 else scaled,
                bias_initializer=self.bias_initializer,
                dtype=self.dtype_policy,
                name=name,
            )
        dense.build(input_shape)
        return dense

    def __call__(
        self,
        query: TensorLike,
        value: TensorLike | None = None,
        key: TensorLike | None = None,
        **kwargs: Any,
    ) -> Any:
        if query is None:
            raise ValueError("query must be a tensor (B, T, M); got None.")
        if value is None:
            raise ValueError(
                "value is missing: attention goes from query to value. For "
                "self-attention, pass one tensor as both, as in "
                "attention(x, x); in keras.Sequential, use a layer that does "
                "so, as in the last example of MultiHeadAttention."
            )
        check_tensors(query=query, value=value, key=key)
        # Self-attention is recognized here, where one tensor is given twice:
        # later, Keras converts each array to a separate tensor, and
        # rematerialization does so with each argument.
        if hasattr(query, "__array__") and not ops.is_tensor(query):
            array, query = query, ops.convert_to_tensor(query)
            value = query if value is array else value
            key = query if key is array else key
        key = None if key is value else key
        if (value if key is None else key) is query:
            if kwargs.get("self_attention") is not None:
                Boolean().check("self_attention", kwargs["self_attention"])
            kwargs["self_attention"] = True
        if key is not None:
            kwargs["key"] = key
        return super().__call__(query, value, **kwargs)

    # `value` is required, but Keras would report its absence without advice.
    def call(
        self,
        query: Tensor,
        value: Tensor | None = None,
        key: Tensor | None = None,
        *,
        query_mask: TensorLike | None = None,
        value_mask: TensorLike | None = None,
        key_mask: TensorLike | None = None,
        attention_mask: TensorLike | None = None,
        use_causal_mask: bool = False,
        return_attention_scores: bool = False,
        positions: Positions | None = None,
        key_positions: Positions | None = None,
        self_attention: bool | None = None,
        length: TensorLike | None = None,
        cache: Cache | None = None,
        cache_update_index: Size | None = None,
        context: Context | None = None,
        training: bool | None = None,
    ) -> Any:
        Boolean().check("return_attention_scores", return_attention_scores)
        x, key, value, cache, context = read_inputs(
            *(self, query, value, key, context, training),
            masks=(query_mask, value_mask, key_mask, attention_mask),
            places=(positions, key_positions, length),
            slots=(cache, cache_update_index),
            modes=(use_causal_mask, self_attention, return_attention_scores),
        )
        query, key, value = self._project(x, key, value)
        query, key = self._normalize(query, key)
        # Rotated before they are cached, so that every key is rotated once. An
        # encoding that rotates has no bias, which would need other keys.
        query, key = self._rotate(query, key, context)
        if cache is not None:
            key, value, cache = update_cache(
                cache, key, value, context.index, context.window
            )
        output, weights = self._attend_to_all(
            query, key, value, x, context, return_attention_scores, training
        )
        results = [self._combine(output, x), weights, cache]
        results = [each for each in results if each is not None]
        return results[0] if len(results) == 1 else tuple(results)

    def _project(
        self, query: Tensor, key: Tensor | None, value: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Computes queries, keys and values `(B, T or S, heads, width)`.

        Args:
            query: `(B, T, M)`.
            key: `(B, S, M)`, or `None` for queries alone.
            value: `(B, S, M)`.

        Returns:
            Tuple of queries, keys and values; without a key, the last two are
            `None`.
        """
        if key is None:
            return _split(self.query_dense, query, self.key_dim), None, None
        denses = (self.query_dense, self.key_dense, self.value_dense)
        alike = (
            query is key and key is value and self.key_dim == self.value_width
        )
        if not alike or self.use_bias or any(map(_is_quantized, denses)):
            return (
                _split(self.query_dense, query, self.key_dim),
                _split(self.key_dense, key, self.key_dim),
                _split(self.value_dense, value, self.value_width),
            )
        # One matrix product is faster than three narrow ones.
        kernel = ops.concatenate([dense.kernel for dense in denses], axis=-1)
        kernel = ops.cast(kernel, self.compute_dtype)
        kernel = ops.reshape(kernel, (kernel.shape[0], -1, self.key_dim))
        query = ops.cast(query, self.compute_dtype)
        projected = _contract(query, kernel)
        heads = self.num_heads
        # Keras splits into equal parts in fewer operations.
        ends = [heads, heads + (self.num_key_value_heads or heads)]
        return ops.split(projected, 3 if ends[1] == 2 * heads else ends, axis=2)

    def _normalize(
        self, query: Tensor, key: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Applies RMS normalization to the features of each head, if wanted."""
        if not self.use_query_key_norm:
            return query, key

        def normalize(features: Tensor, scale: Tensor) -> Tensor:
            # float32, because squares of float16 numbers overflow.
            numbers = ops.cast(features, "float32")
            square = ops.mean(ops.square(numbers), axis=-1, keepdims=True)
            numbers = numbers * ops.rsqrt(square + self.norm_epsilon)
            numbers = numbers * ops.cast(scale, "float32")
            return ops.cast(numbers, self.compute_dtype)

        query = normalize(query, self.query_scale)
        return query, key if key is None else normalize(key, self.key_scale)

    def _rotate(
        self, query: Tensor, key: Tensor | None, context: Context
    ) -> tuple[Tensor, Tensor | None]:
        """Rotates queries and keys, if the encoding does so."""
        if self.encoding.stage != "rotation":
            return query, key
        rotated, new_key = self.encoding.rotate(
            query,
            query if key is None else key,
            context.positions,
            context.positions if key is None else context.new_positions,
            length=context.length,
            **pass_on(context.prepared),
        )
        return rotated, key if key is None else new_key

    def _attend_to_all(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        inputs: Tensor,
        context: Context,
        return_weights: bool,
        training: bool | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Computes the attention of all queries, perhaps in chunks of them.

        Args:
            query: Rotated queries `(B, T, H, D)`.
            key: Rotated keys `(B, S, heads, D)`.
            value: Values `(B, S, heads, value_dim)`.
            inputs: `(B, T, M)`, from which the queries were computed.
            context: `Context`.
            return_weights: bool, whether weights are wanted, for which there
                are no chunks.
            training: bool or `None`, whether to apply dropout.

        Returns:
            Weighted sums of the values `(B, T, H, value_dim)`, and the weights,
            float32 `(B, H, T, S)`, or `None`.
        """
        if is_fused(self, query, key, context, return_weights):
            return attend_fused(
                self, query, key, value, context, training
            ), None
        window = context.window
        queries = {
            "query": query,
            "inputs": inputs,
            "positions": context.positions,
            "indices": context.indices,
            "mask": context.attention_mask,
            "ranks": None if window is None else window.ranks,
        }
        keys_and_values = {
            "key": key,
            "value": value,
            "positions": context.key_positions,
            "mask": context.key_mask,
            "ranks": None if window is None else window.key_ranks,
        }
        options: dict[str, Any] = {
            "causal": context.causal,
            "training": training,
        }
        size = context.chunk_size
        if size is not None and not return_weights:
            chunks = (queries, keys_and_values, size, options)
            if window is not None and window.sliced:
                return self._attend_near(*chunks, window), None
            return self._attend_in_chunks(*chunks), None
        if context.chunk_size is None:
            keys_and_values["prepared"] = context.prepared
            options["joined"] = context.mask
        output, weights = self._attend(
            queries, self._repeat(keys_and_values), **options
        )
        if not return_weights:
            return output, None
        # Masks may hide all scores of an invalid query, but not these.
        marks = 0 * ops.transpose(query[..., :1], (0, 2, 1, 3))
        return output, weights + ops.cast(marks, "float32")

    def _attend_in_chunks(
        self,
        queries: Tensors,
        keys_and_values: Tensors,
        chunk_size: int,
        options: dict[str, Any],
        near: Tensors | None = None,
    ) -> Tensor:
        """Computes the attention of chunks of queries.

        Args:
            queries: As for `_attend`.
            keys_and_values: As for `_attend`, without repeated heads. If there
                is `near`, only those of the first tokens.
            chunk_size: int, number of queries in a chunk.
            options: Dict of further arguments of `_attend`.
            near: Dict of the keys and values near each chunk, or `None`.

        Returns:
            `(B, T, H, value_dim)`.
        """

        def attend(queries: Tensors, keys_and_values: Tensors) -> Tensor:
            if near is not None:
                queries, keys_and_values = join_keys(queries, keys_and_values)
                keys_and_values = self._repeat(keys_and_values)
            return self._attend(queries, keys_and_values, **options)[0]

        if near is None:
            # Once, and not once for each chunk.
            keys_and_values = self._repeat(keys_and_values)
        return attend_in_chunks(
            attend,
            queries,
            keys_and_values,
            chunk_size=chunk_size,
            shape=(self.num_heads, self.value_width),
            layer=self,
            generator=self._find_dropout_generator(options["training"]),
            near=near,
        )

    def _attend_near(
        self,
        queries: Tensors,
        keys_and_values: Tensors,
        chunk_size: int,
        options: dict[str, Any],
        window: Window,
    ) -> Tensor:
        """The same, where each chunk reads only the keys that it can see."""
        indices, moved = queries["indices"], None
        queries = {
            name: queries[name] for name in ("query", "positions", "ranks")
        }
        keys_and_values = {name: keys_and_values[name] for name in KEY_AXES}
        if len(window.key_ranks.shape) == 2:
            real = window.key_ranks >= 0
            queries, moved = pack_tokens(queries, real)
            keys_and_values, _ = pack_tokens(keys_and_values, real)
            # Padding, now behind all real tokens, sees the last of them.
            queries["ranks"] = ops.arange(ops.shape(real)[1], dtype="int32")
        queries |= {"indices": indices, "inputs": None, "mask": None}
        near, first = split_keys(
            keys_and_values,
            size=cast(int, self.sliding_window),
            sink_tokens=self.sink_tokens,
            chunk_size=chunk_size,
            causal=options["causal"],
        )
        output = self._attend_in_chunks(
            queries, first, chunk_size, options, near
        )
        return output if moved is None else take_tokens(output, moved)

    def _attend(
        self,
        queries: Tensors,
        keys_and_values: Tensors,
        *,
        causal: bool,
        training: bool | None,
        joined: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Computes the attention of some queries to all keys.

        Args:
            queries: Dict of the rotated `"query"` `(B, T, H, D)`, the
                `"inputs"` `(B, T, M)` of its projection, its `"positions"`,
                `"indices"` among the keys, int32 `(T,)`, a boolean `"mask"`
                `(1 or B, 1 or H, T, S)` or `None`, and, with a sliding window,
                its `"ranks"`, int32 `(T,)` or `(B, T)`.
            keys_and_values: Dict of `"key"` and `"value"`
                `(B, S, H, width)`, their `"positions"`, a boolean `"mask"`
                `(B, S)` or `None`, perhaps what the encoding has `"prepared"`,
                and, with a sliding window, their `"ranks"`.
            causal: bool, whether queries attend to no later keys.
            training: bool or `None`, whether to apply dropout.
            joined: All masks joined, or `None`.

        Returns:
            Weighted sums of the values `(B, T, H, value_dim)`, and the weights,
            float32 `(B, H, T, S)`.
        """
        scores = self._compute_scores(queries, keys_and_values, causal=causal)
        mask = joined
        if mask is None:
            mask = self.join_masks(
                queries["mask"],
                keys_and_values.get("mask"),
                (queries["ranks"], keys_and_values["ranks"]),
                queries["indices"],
                ops.shape(keys_and_values["key"])[1],
                causal=causal,
            )
        if self.score_factor == "log_length" or (
            self.train_length is not None and not training
        ):
            scores = self._scale_by_length(scores, mask)
        weights = self._compute_weights(scores, mask, queries["indices"])
        dropped = weights
        if self.dropout:
            dropped = self.dropout_layer(weights, training=training)
        dropped = ops.cast(dropped, self.compute_dtype)
        output = ops.einsum(
            "bhts,bshd->bthd", dropped, keys_and_values["value"]
        )
        return output, weights

    def join_masks(
        self,
        attention_mask: Tensor | None,
        key_mask: Tensor | None,
        ranks: tuple[Tensor, Tensor] | None,
        indices: Tensor,
        keys: Size,
        *,
        causal: bool,
    ) -> Tensor | None:
        """Combines all masks; see `masks.join_masks`.

        Args:
            attention_mask: Boolean tensor `(1 or B, 1 or H, T, S)`, or `None`.
            key_mask: Boolean tensor `(B, S)`, true for real keys, or `None`.
            ranks: Ranks of queries and keys, which a sliding window needs.
            indices: Indices of the queries among the keys, int32 `(T,)`.
            keys: Number of keys `S`.
            causal: bool, whether queries attend to no later keys.

        Returns:
            Boolean tensor that broadcasts to `(B, H, T, S)`, or `None`.
        """
        shown = None
        if self.sliding_window is not None and ranks is not None:
            shown = show_window(
                ranks, self.sliding_window, self.sink_tokens, causal=causal
            )
        by_index = causal and shown is None
        return join_masks(
            attention_mask, key_mask, indices if by_index else None, keys, shown
        )

    def _compute_scores(
        self, queries: Tensors, keys_and_values: Tensors, *, causal: bool
    ) -> Tensor:
        """Computes scores without masks, float32 `(B, H, T, S)`."""
        query = ops.cast(queries["query"], "float32")
        if self.scale_scores:
            query = query * self.key_dim**-0.5
        key = ops.cast(keys_and_values["key"], "float32")
        positions = queries["positions"], keys_and_values["positions"]
        scores = self.encoding.multiply(query, key, *positions)
        if self.score_factor == "head":
            scores = scores * ops.cast(self.factor, "float32")
        if self.logit_soft_cap is not None:
            cap = self.logit_soft_cap
            scores = cap * ops.tanh(scores / cap)
        if self.encoding.stage != "bias":
            return scores
        return scores + self.encoding.attention_bias(
            queries["query"],
            keys_and_values["key"],
            *positions,
            causal=causal and self.encoding.sampler.keeps_order,
            **pass_on(keys_and_values.get("prepared")),
        )

    def _combine(self, output: Tensor, inputs: Tensor) -> Tensor:
        """Maps the heads' results `(B, T, H, value_dim)` to `(B, T, M)`.

        Args:
            output: The results.
            inputs: `(B, T, M)`, from which the queries were computed.
        """
        dense = self.output_dense
        if self.use_gate:
            gate = _split(self.gate_dense, inputs, self.value_width)
            output = output * ops.sigmoid(gate)
        if _is_quantized(dense):
            shape = (*ops.shape(output)[:2], self.num_heads * self.value_width)
            return dense(ops.reshape(output, shape))
        kernel = ops.reshape(
            ops.cast(dense.kernel, dense.compute_dtype),
            (self.num_heads, self.value_width, -1),
        )
        output = _contract(output, kernel, axes=2)
        if dense.bias is None:
            return output
        return output + ops.cast(dense.bias, dense.compute_dtype)

    def _scale_by_length(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """Multiplies scores by a function of the number of visible keys."""

        def find_scale(mask: Tensor | None) -> Tensor:
            log = log_visible(scores, mask)
            if self.train_length is None:
                return ops.cast(self.factor, "float32") * log
            return ops.maximum(log / math.log(self.train_length), 1.0)

        if not self.encoding.hides_keys:
            return scores * find_scale(mask)
        hidden = scores < HIDDEN / 2
        shown = ops.logical_not(hidden)
        visible = shown if mask is None else ops.logical_and(shown, mask)
        # The scores of hidden keys are kept: of a single visible key, the
        # logarithm is 0.
        return ops.where(hidden, scores, scores * find_scale(visible))

    def _compute_weights(
        self, scores: Tensor, mask: Tensor | None, indices: Tensor
    ) -> Tensor:
        """Computes the attention weights, float32 `(B, H, T, S)`.

        Args:
            scores: float32 `(B, H, T, S)`.
            mask: Boolean tensor that broadcasts to `(B, H, T, S)`, or `None`.
            indices: Indices of the queries among the keys, int32 `(T,)`.
        """
        if mask is not None:
            # Below any bias, but finite, so that a query without keys gives
            # numbers and not NaN.
            scores = ops.where(mask, scores, -1e30)
        if self.use_sinks:
            return softmax_with_sinks(scores, ops.cast(self.sinks, "float32"))
        # Keras warns about a softmax over an axis of size one.
        if scores.shape[-1] == 1:
            return ops.ones_like(scores)
        return ops.softmax(scores, axis=-1)

    def load_keras_weights(
        self, layer: keras.layers.MultiHeadAttention
    ) -> None:
        """Copies the weights of an attention layer of Keras.

        Without an encoding and with the default options of scores, the outputs
        are then those of the layer of Keras. A layer that is not built is built
        for the same widths.

        Args:
            layer: `keras.layers.MultiHeadAttention` that is built.

        Raises:
            ValueError: If `layer` is not such a layer, or has other shapes.

        Example:

        >>> import keras
        >>> from keras_lengen.layers import MultiHeadAttention
        >>> x = keras.random.normal((1, 6, 16))
        >>> theirs = keras.layers.MultiHeadAttention(2, 8)
        >>> expected = theirs(x, x)
        >>> ours = MultiHeadAttention(2, 8)
        >>> ours.load_keras_weights(theirs)
        >>> bool(keras.ops.all(abs(ours(x, x) - expected) < 1e-5))
        True
        """
        load_keras_weights(self, layer)

    def find_chunk_size(
        self, tokens: Any, keys: Any, *, sliced: bool = False
    ) -> int | None:
        """Finds the number of queries in a chunk, or `None` for no chunks.

        Args:
            tokens: Number of queries as in a tensor's shape: an int, `None`,
                or a symbol of JAX.
            keys: Number of keys, in the same form.
            sliced: bool, whether chunks read only the keys in the window.
        """
        size = self.chunk_size
        if not isinstance(tokens, int | None):
            # JAX cannot verify that a symbolic size splits into chunks.
            return None
        if size == "auto":
            if not (isinstance(tokens, int) and isinstance(keys, int)):
                return None
            if tokens * keys <= DIRECT_PAIRS:
                return None
            size = max(1, CHUNK_PAIRS // keys)
            if sliced and self.sliding_window is not None:
                # Each key is read by about two chunks.
                least, most = WINDOW_CHUNKS
                size = min(max(self.sliding_window, least), most)
        if size is None or (tokens is not None and tokens <= size):
            return None
        return size

    def _find_dropout_generator(
        self, training: bool | None
    ) -> keras.random.SeedGenerator | None:
        """Finds the generator of the dropout, or `None` without dropout."""
        if not (training and self.dropout):
            return None
        return self.dropout_layer.seed_generator

    def _repeat(self, keys_and_values: Tensors) -> Tensors:
        """Repeats heads of keys and values, to one for each query head."""

        def repeat(features: Tensor) -> Tensor:
            groups = self.num_heads // features.shape[2]
            if groups == 1:
                return features
            return ops.repeat(features, groups, axis=2)

        key, value = (
            repeat(keys_and_values[name]) for name in ("key", "value")
        )
        return {**keys_and_values, "key": key, "value": value}

    def compute_mask(
        self, query: Tensor, mask: Tensor | None = None
    ) -> Tensor | None:
        return mask

    def compute_output_shape(
        self,
        query_shape: Shape,
        value_shape: Shape,
        key_shape: Shape | None = None,
    ) -> Shape:
        return (*query_shape[:-1], self.output_dim or query_shape[-1])

    def compute_output_spec(
        self,
        query: keras.KerasTensor,
        value: keras.KerasTensor,
        key: keras.KerasTensor | None = None,
        **kwargs: Any,
    ) -> Any:
        is_self = (value if key is None else key) is query
        return find_output_spec(
            self, query, value, key, is_self=is_self, options=kwargs
        )


def check_head_groups(num_heads: int, num_key_value_heads: int | None) -> None:
    """Raises `ValueError` unless heads can share keys and values evenly."""
    if num_heads % (num_key_value_heads or num_heads):
        raise ValueError(
            f"num_key_value_heads={num_key_value_heads} does not divide "
            f"num_heads={num_heads}."
        )


def softmax_with_sinks(scores: Tensor, sinks: Tensor) -> Tensor:
    """Computes a softmax over scores and one further number.

    Args:
        scores: float32 `(B, H, T, S)`.
        sinks: float32 `(H, 1, 1)`, the further number of each head.

    Returns:
        float32 `(B, H, T, S)`, the weights without that of the number.
    """
    largest = ops.maximum(ops.max(scores, axis=-1, keepdims=True), sinks)
    largest = ops.stop_gradient(largest)
    powers = ops.exp(scores - largest)
    total = ops.sum(powers, axis=-1, keepdims=True)
    return powers / (total + ops.exp(sinks - largest))


_MEAN_LOG = 5.935754
"""Mean of the logarithms of 1 to 1,024."""


def _is_quantized(dense: keras.layers.Dense) -> bool:
    return dense.quantization_mode is not None


def _split(dense: keras.layers.Dense, features: Tensor, width: int) -> Tensor:
    """Applies a dense layer and splits its results into heads.

    Args:
        dense: `keras.layers.Dense` with `heads * width` units.
        features: `(B, T, M)`.
        width: int, width of a head.

    Returns:
        `(B, T, heads, width)`.
    """
    heads = dense.units // width
    if _is_quantized(dense):
        flat = dense(features)
        return ops.reshape(flat, (*ops.shape(flat)[:2], heads, width))
    # No size of the features has to be read to split the kernel.
    kernel = ops.reshape(
        ops.cast(dense.kernel, dense.compute_dtype), (-1, heads, width)
    )
    features = ops.cast(features, dense.compute_dtype)
    heads_of = _contract(features, kernel)
    if dense.bias is None:
        return heads_of
    bias = ops.cast(dense.bias, dense.compute_dtype)
    return heads_of + ops.reshape(bias, (heads, width))


def _contract(features: Tensor, kernel: Tensor, axes: int = 1) -> Tensor:
    """Sums products over the last axes of features and the first of a kernel.

    Args:
        features: `(B, T, M)`, or `(B, T, H, D)` for two axes.
        kernel: `(M, H, D)`, or `(H, D, M)` for two axes.
        axes: int, number of axes to sum over.
    """
    shape = features.shape
    if None in shape:
        equation = "btm,mhd->bthd" if axes == 1 else "bthd,hdm->btm"
        return ops.einsum(equation, features, kernel)
    # One product of matrices, and not one for each example, whose gradients
    # of the kernel would have to be added up.
    width = math.prod(kernel.shape[:axes])
    product = ops.matmul(
        ops.reshape(features, (-1, width)), ops.reshape(kernel, (width, -1))
    )
    return ops.reshape(product, (*shape[:2], *kernel.shape[axes:]))
