"""Multi-head attention with a positional encoding."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    Boolean,
    Constraint,
    Initializer,
    Integer,
    Number,
    OneOrMore,
    Optional,
    Regularizer,
    Seed,
)
from keras_lengen.checks.constructors import WithArguments, argument
from keras_lengen.checks.inputs import NamedInputs, check_tensors
from keras_lengen.layers.attention.axes import (
    check_equal_axes,
    join_axes,
    return_results,
)
from keras_lengen.layers.attention.cache import update_cache
from keras_lengen.layers.attention.call_arguments import Cache, CallArguments
from keras_lengen.layers.attention.chunks import ChunkSize
from keras_lengen.layers.attention.computation import Computation
from keras_lengen.layers.attention.context import Context
from keras_lengen.layers.attention.flash import check_flash
from keras_lengen.layers.attention.fused import refuse
from keras_lengen.layers.attention.inputs import (
    find_output_spec,
    read_inputs,
    take_checked,
)
from keras_lengen.layers.attention.keras_weights import (
    load_keras_weights,
    remove_axes_of_heads,
)
from keras_lengen.layers.attention.projections import Projections
from keras_lengen.layers.attention.scores import FactorArgument, LengthFactor
from keras_lengen.layers.encodings.base import (
    EncodingArgument,
)
from keras_lengen.layers.encodings.nope import NoPE
from keras_lengen.layers.random_layer import Dropout
from keras_lengen.types import Positions, Shape, Size, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_lengen")
class MultiHeadAttention(WithArguments, NamedInputs, Computation, Projections):
    """Multi-head attention with a positional encoding.

    It takes all arguments of `keras.layers.MultiHeadAttention`, in the same
    order, and further ones. In addition, the encoding rotates queries and keys
    or adds a bias to the scores,
    `rotated(q) . rotated(k) / sqrt(key_dim) + bias`.

    Scores and softmax are float32 with every dtype policy. A causal mask
    compares indices of tokens, never positions.

    Differs from Keras: if there are fewer queries than keys, a causal mask
    treats the queries as the last tokens, which is right when a sequence
    continues after earlier keys; Keras treats them as the first tokens. If
    there are more queries than keys, a causal mask raises an error, because the
    first queries would see no key. Masks that Keras propagates exclude keys but
    not queries.

    Args:
        num_heads: int, at least 1. Number of attention heads `H`.
        key_dim: int, at least 1. Width of the queries and keys of a head.
        value_dim: int, at least 1. Width of the values of a head, or `None`
            for `key_dim`.
        dropout: float from 0 to below 1. Dropout rate of the attention
            weights.
        use_bias: bool, whether the projections have biases.
        output_shape: Width of the output, a positive int; a tuple of these for
            several last axes; or `None` for the width of the query. It is the
            attribute `output_axes`.
        attention_axes: Axes to attend over, an int or a tuple of ints, if
            inputs have more than three axes, `(B, ..., M)`; negative ints
            count from the end. `None`: all axes but the first and last one.
            Each entry of the other axes has an attention of its own.
        sliding_window: int, at least 1, or `None`. Query `i` sees the keys
            `i - sliding_window + 1 .. i` with a causal mask, and otherwise
            those with `|i - j| < sliding_window`. These are indices of real
            tokens, never positions. In chunks, only the keys that a chunk can
            see are read, so that time grows with `T` and not with its square,
            unless there is an `attention_mask`, the tokens are those of two
            sequences, or the encoding counts all keys.
        flash_attention: bool or `None`. `True`: scores are computed by
            `keras.ops.dot_product_attention` with flash attention, which needs
            a GPU or TPU that has it, JAX or PyTorch, a compute dtype of 16
            bits, no dropout, no returned scores, no bias of the encoding, and
            neither a soft cap, sinks, entmax nor factors for the number of
            keys; otherwise there is an error. `False` and
            `None`: never.
        kernel_initializer: Initializer of the projections.
        bias_initializer: Initializer of the biases of the projections.
        kernel_regularizer: Regularizer of the kernels of the projections, or
            `None`.
        bias_regularizer: Regularizer of their biases, or `None`.
        activity_regularizer: Regularizer of the results of the projections,
            or `None`. It is the attribute `projection_regularizer`.
        kernel_constraint: Constraint of the kernels of the projections, or
            `None`.
        bias_constraint: Constraint of their biases, or `None`.
        use_gate: bool, whether the result of each head is multiplied by a
            gate, the sigmoid of a linear map of the query, before the output
            projection.
        seed: int from 0 to `2 ** 31 - 1`, seed of the dropout, or `None`.
        encoding: `PositionalEncoding` that rotates queries and keys or adds a
            bias, or `None` for none. An encoding of the embeddings is not
            allowed, because it is added before attention.
        num_key_value_heads: int, at least 1, that divides `num_heads`. Number
            of heads of keys and values, each shared by a group of query heads;
            `None` for `num_heads`.
        scale_scores: bool, whether scores are divided by `sqrt(key_dim)`. If
            not, the initial kernel of the query projection is divided by it,
            as in T5.
        score_factor: str, `LengthFactor` or `None`. Factor of the products of
            queries and keys, before the bias is added. `"head"`: a learned
            number of each head, at first 1. `"log_length"`: `s * log(n)`, where
            `s` is a learned number of each head and `n` the number of keys that
            neither a mask nor the encoding hides, so that attention does not
            get flatter in longer sequences (scalable softmax). `"adaptive"`:
            `1 + softplus(x . b) * log(i + 2) ** (2 * tanh(x . c))`, where `x`
            is the token that the query is computed from, `i` is its index among
            the real tokens, from 0, and `b` and `c` are learned vectors of each
            head, at first 0, so that the factor is 1.69 (the scale of ASEntmax,
            for `use_entmax`). Keys must then be the queries' own tokens, unless
            there is a causal mask. `LengthFactor(floor=...)`: grows with the
            number of keys above a floor and learns nothing.
        train_length: int, at least 2, or `None`. Longest length in training: in
            evaluation, scores are multiplied by `log(n) / log(train_length)`
            before the bias is added, for queries that see `n` keys, more than
            `train_length`. It has no weights and does not change training.
            Not together with another factor for the number of keys.
        logit_soft_cap: float above 0 or `None`. With it, products of queries
            and keys, after `scale_scores` and the factor of a head, become
            `logit_soft_cap * tanh(product / logit_soft_cap)`, before the bias
            is added and before masks.
        use_query_key_norm: bool, whether RMS normalization is applied to the
            queries and keys of each head before they are rotated, each with a
            learned scale `(key_dim,)` that the heads share.
        norm_epsilon: float above 0. Number added to the mean square in that
            normalization.
        use_sinks: bool, whether each head has a learned number `c` that takes
            part in the softmax like the score of an additional key without a
            value: weights are `exp(score) / (exp(c) + sum(exp(scores)))`, and
            their sum is less than 1.
        use_entmax: bool, whether the weights are those of entmax with
            `alpha = 1.5` and not those of softmax. Keys with low scores get
            weight 0, and their number does not make attention flatter. The
            number of `use_sinks` is then a further score of entmax.
        sink_tokens: int, at least 0. Number of first tokens of the sequence
            that stay visible outside of the window, which is needed. They
            keep their positions, unlike in StreamingLLM, which numbers the
            tokens in its cache anew.
        chunk_size: Number of queries whose scores are in memory at a time, a
            positive int. `None`: all queries. `"auto"`: all queries up to
            2,048 x 2,048 pairs of tokens and fewer for longer sequences, if
            their length is known when the model is traced.
        fused: bool or `"auto"`. Whether to use fused kernels, which keep
            scores, biases, masks and dropout in the fast memory of a TPU, with
            JAX. They need an encoding without a bias, or with one that is a
            function of two positions and up to 128 numbers per head
            (`BiasEncoding.bias_of_pair`), and no `attention_mask`, cache or
            attention weights to return; a bias or a soft cap excludes factors
            that depend on the number of keys. Several devices that share a
            batch must be known from `keras.distribution` or `jax.set_mesh`.
            `"auto"` uses them where possible, `True` raises an error elsewhere,
            and `False` never uses them. With them, dropout drops other weights
            than without.

    Call arguments:
        query: Float tensor `(B, T, M)`, or one of more axes.
        value: Float tensor `(B, S, M)`, or one of more axes.
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
        segment_ids: Integers `(B, T)`, the document of each token, if rows
            are packed with several documents; or `None`. A document begins at
            the first token and wherever the number changes. Each document is
            then computed as in a row of its own: tokens see no other document,
            and positions from the sampler, windows, sink tokens and everything
            else that counts tokens begin anew. `positions` are used as given.
            Not together with a `cache`, `length`, fused kernels,
            `distances="sampled"`, or, without `positions`, a sampler of images
            or of token ids. Random samplers give documents of equal length the
            same draw. With a `sliding_window`, chunks read all keys.
        key_segment_ids: Integers `(B, S)`, the document of each key, if keys
            are of another sequence; or `None`. Queries then see the keys with
            their own number.
        length: Length of the whole sequence in tokens, a number or a tensor
            `()` or `(B,)`, for encodings that depend on it. `None`: the number
            of real keys.
        cache: Dict of the keys and values of a whole sequence, `(B, S, heads,
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
    numbered without it. Keras passes the mask of `query` as `query_mask`, which
    says which tokens are numbered, and that of `value` as `value_mask`, which
    excludes keys and, in self-attention without a `query_mask`, numbers the
    tokens too.

    With more than three axes, `T` and `S` are the numbers of tokens in the
    attention axes, in their order, to which positions, causal masks and windows
    refer. Masks of the inputs have all axes but the last. An `attention_mask`
    ends with the attention axes of the query and of the key, after none, the
    first, or more of the batch, the other axes and the heads. There is no cache
    and no `length`.

    Returns:
        Float tensor `(B, T, output width)` in the compute dtype; or a tuple of
        it and, where requested, the attention weights and the cache. With more
        axes, weights have the shape `(B, other axes, H, attention axes of the
        query, attention axes of the key)`.

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
            `attention_mask` is given; if positions that only the caller knows
            are missing; if tensors do not fit each other. If sizes are known
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

    The layer has two inputs, `query` and `value`. In `keras.Sequential`, where
    every layer has one, use a layer that passes its input as both:

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
    Adaptive scale: Vasylenko et al., 2025. https://arxiv.org/abs/2506.16640
    Trained length: Puvvada et al., 2025 (SWAN-GPT).
    https://arxiv.org/abs/2504.08719
    Soft cap: Gemma Team, 2024, section 2. https://arxiv.org/abs/2408.00118
    Normalization: Henry et al., 2020.
    https://arxiv.org/abs/2010.04245
    Learned sinks: OpenAI, 2025 (gpt-oss). https://arxiv.org/abs/2508.10925
    Entmax: Peters et al., 2019. https://arxiv.org/abs/1905.05702
    Gate: Qiu et al., 2025. https://arxiv.org/abs/2505.06708
    Sliding window: Beltagy et al., 2020. https://arxiv.org/abs/2004.05150
    Sink tokens: Xiao et al., 2024. https://arxiv.org/abs/2309.17453
    """

    causal_only = False
    """Whether the layer works as causal attention only."""

    unused_options: ClassVar[tuple[str, ...]] = ()
    """Names of the options of scores and windows that the layer refuses."""

    num_heads: int = argument(Integer(example=4), kw_only=False)
    key_dim: int = argument(Integer(example=6), kw_only=False)
    value_dim: int | None = argument(
        Optional(Integer(example=6)), default=None, kw_only=False
    )
    dropout: float = argument(
        Number(0, below=1, example=0.5), default=0.0, kw_only=False
    )
    use_bias: bool = argument(default=True, kw_only=False)
    # Keras prints an attribute `output_shape` in summaries.
    output_axes: int | Sequence[int] | None = argument(
        Optional(OneOrMore(Integer(), example=(2, 3))),
        default=None,
        kw_only=False,
        alias="output_shape",
    )
    attention_axes: int | Sequence[int] | None = argument(
        Optional(OneOrMore(Integer(None), example=-2)),
        default=None,
        kw_only=False,
    )
    sliding_window: int | None = argument(
        Optional(Integer(example=3)), default=None, kw_only=False
    )
    flash_attention: bool | None = argument(default=None, kw_only=False)
    kernel_initializer: Any = argument(
        Initializer(example="he_normal"),
        default="glorot_uniform",
        kw_only=False,
    )
    bias_initializer: Any = argument(
        Initializer(example="ones"), default="zeros", kw_only=False
    )
    kernel_regularizer: Any = argument(
        Optional(Regularizer(example="l2")), default=None, kw_only=False
    )
    bias_regularizer: Any = argument(
        Optional(Regularizer(example="l2")), default=None, kw_only=False
    )
    # Keras applies an attribute `activity_regularizer` to the output.
    projection_regularizer: Any = argument(
        Optional(Regularizer(example="l2")),
        default=None,
        kw_only=False,
        alias="activity_regularizer",
    )
    kernel_constraint: Any = argument(
        Optional(Constraint(example="non_neg")), default=None, kw_only=False
    )
    bias_constraint: Any = argument(
        Optional(Constraint(example="non_neg")), default=None, kw_only=False
    )
    use_gate: bool = argument(default=False, kw_only=False)
    seed: int | None = argument(Seed(), default=None, kw_only=False)
    encoding: EncodingArgument = argument(
        EncodingArgument(absent=NoPE), default=None
    )
    num_key_value_heads: int | None = argument(
        Optional(Integer(example=1)), default=None
    )
    scale_scores: bool = argument(default=True)
    score_factor: (
        Literal["head", "log_length", "adaptive"] | LengthFactor | None
    ) = argument(FactorArgument(), default=None)
    train_length: int | None = argument(
        Optional(Integer(2, example=3)), default=None
    )
    logit_soft_cap: float | None = argument(
        Optional(Number(above=0, example=0.5)), default=None
    )
    use_query_key_norm: bool = argument(default=False)
    norm_epsilon: float = argument(Number(above=0, example=0.1), default=1e-6)
    use_sinks: bool = argument(default=False)
    use_entmax: bool = argument(default=False)
    sink_tokens: int = argument(Integer(0, example=1), default=0)
    chunk_size: int | Literal["auto"] | None = argument(
        ChunkSize(example=3), default="auto"
    )
    fused: Literal["auto"] | bool = argument(default="auto")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.supports_masking = True
        self.value_width = self.value_dim or self.key_dim
        self.sinks = self.factor = self.query_scale = self.key_scale = None
        if self.encoding.stage == "embeddings":
            raise ValueError(
                f"encoding={type(self.encoding).__name__} is added to the "
                "embeddings and does nothing in attention: apply it to the "
                "input of the first block."
            )
        check_head_groups(self.num_heads, self.num_key_value_heads)
        self._check_options()
        self.dropout_layer = Dropout(
            self.dropout, seed=self.seed, dtype="float32"
        )

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
        factors = self.make_scores(training=False).factors
        counting = [factor.name for factor in factors if factor.counts]
        if len(counting) > 1:
            raise ValueError(
                f"{' and '.join(counting)} both scale scores by the number of "
                "keys: leave one of them out."
            )
        if self.sink_tokens and self.sliding_window is None:
            raise ValueError(
                f"sink_tokens={self.sink_tokens} are first tokens that stay "
                "visible outside of a window, but there is none: set "
                "sliding_window."
            )
        if self.flash_attention:
            name = type(self.encoding).__name__
            check_flash(
                self.make_rule(None),
                {
                    "dropout of attention weights": self.dropout > 0,
                    f"the wider keys of {name}": self.encoding.num_rotations
                    > 1,
                    "learned sinks": self.use_sinks,
                    "the kernels of fused=True": self.fused is True,
                },
            )
        if self.fused is True:
            refuse(self.make_rule(None).obstacle())

    def build(
        self,
        query_shape: Shape,
        value_shape: Shape,
        key_shape: Shape | None = None,
    ) -> None:
        key_shape = value_shape if key_shape is None else key_shape
        check_equal_axes(value_shape, key_shape)
        query_shape, value_shape, key_shape = map(
            join_axes, (query_shape, value_shape, key_shape)
        )
        self.input_widths = {
            "query": query_shape[-1],
            "key": key_shape[-1],
            "value": value_shape[-1],
        }
        self._build_projections(query_shape, value_shape, key_shape)
        self._add_score_weights()
        head = (self.num_heads, self.key_dim)
        shapes = [(*query_shape[:2], *head), (*key_shape[:2], *head)]
        if self.encoding.reads_inputs:
            shapes[1] = (*key_shape[:2], self.key_heads, self.key_dim)
            shapes.append(query_shape)
        if not self.encoding.built:
            self.encoding.build(*shapes)
        else:
            self.encoding.check_widths(shapes[0])
            if self.encoding.reads_inputs:
                self.encoding.check_features(*shapes[1:])
        self.apply_dtype_policies()

    def __call__(
        self,
        query: TensorLike,
        value: TensorLike | None = None,
        key: TensorLike | None = None,
        *args: Any,
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
        if len(args) > len(_AFTER_KEY):
            raise TypeError(
                "arguments after use_causal_mask are given by name, such as "
                f"positions=...; got {len(args) - len(_AFTER_KEY)} more."
            )
        kwargs |= dict(zip(_AFTER_KEY, args, strict=False))
        # Self-attention is recognized here, where one tensor is given twice:
        # later, Keras converts each array to a separate tensor, and
        # rematerialization does so with each argument.
        # A symbol has `__array__` too; to convert it adds an operation to the
        # model.
        symbolic = isinstance(query, keras.KerasTensor)
        if hasattr(query, "__array__") and not (
            symbolic or ops.is_tensor(query)
        ):
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
        query_mask: TensorLike | None = None,
        value_mask: TensorLike | None = None,
        key_mask: TensorLike | None = None,
        attention_mask: TensorLike | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
        *,
        positions: Positions | None = None,
        key_positions: Positions | None = None,
        self_attention: bool | None = None,
        segment_ids: TensorLike | None = None,
        key_segment_ids: TensorLike | None = None,
        length: TensorLike | None = None,
        cache: Cache | None = None,
        cache_update_index: Size | None = None,
        context: Context | None = None,
    ) -> Any:
        Boolean().check("return_attention_scores", return_attention_scores)
        if context is not None:
            inputs = take_checked(query, value, cache, context)
        else:
            given = CallArguments(
                query_mask=query_mask,
                value_mask=value_mask,
                key_mask=key_mask,
                attention_mask=attention_mask,
                return_attention_scores=return_attention_scores,
                training=training,
                use_causal_mask=use_causal_mask,
                positions=positions,
                key_positions=key_positions,
                self_attention=self_attention,
                segment_ids=segment_ids,
                key_segment_ids=key_segment_ids,
                length=length,
                cache=cache,
                cache_update_index=cache_update_index,
            )
            inputs = read_inputs(self, query, value, key, given)
        x, key, value, cache, context = inputs
        rule, of_keys = self.make_rule(training), key
        query, key, value = self._project(x, key, value)
        self._add_activity_losses(context, query, key, value)
        query, keys = rule.enter(query, key, value, of_keys, context)
        if cache is not None:
            keys, cache = update_cache(
                cache, keys, context.index, context.window
            )
        call = rule.resolve(query, keys, x, context)
        output, weights = self._attend(
            rule, call, context, return_attention_scores
        )
        output = self._combine(output, x, context)
        return return_results(context.axes, output, weights, cache)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets the values of all weights.

        Args:
            weights: List of arrays, in the order of `weights`. Kernels and
                biases may have the axes of those of Keras, as returned by
                `keras.layers.MultiHeadAttention.get_weights`.
        """
        if self.built:
            weights = remove_axes_of_heads(self, weights)
        super().set_weights(weights)

    def load_keras_weights(
        self,
        layer: keras.layers.MultiHeadAttention
        | keras.layers.GroupQueryAttention,
    ) -> None:
        """Copies the weights of an attention layer of Keras.

        Without an encoding and with the default options of scores, the outputs
        are then those of the layer of Keras. A layer that is not built is built
        for the same widths.

        Args:
            layer: `keras.layers.MultiHeadAttention` that is built; or
                `keras.layers.GroupQueryAttention`, for a layer with its
                `num_query_heads` as `num_heads`, its `head_dim` as `key_dim`,
                and its `num_key_value_heads`.

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
        if key_shape is not None:
            check_equal_axes(value_shape, key_shape)
        return (*query_shape[:-1], *self.find_output_axes(query_shape))

    def compute_output_spec(
        self,
        query: keras.KerasTensor,
        value: keras.KerasTensor,
        key: keras.KerasTensor | None = None,
        **kwargs: Any,
    ) -> Any:
        kwargs.pop("context", None)
        return find_output_spec(
            self, query, value, key, CallArguments(**kwargs)
        )


_AFTER_KEY = (
    "query_mask",
    "value_mask",
    "key_mask",
    "attention_mask",
    "return_attention_scores",
    "training",
    "use_causal_mask",
)
"""Call arguments by position, after the key."""


def check_head_groups(num_heads: int, num_key_value_heads: int | None) -> None:
    """Raises `ValueError` unless heads can share keys and values evenly."""
    if num_heads % (num_key_value_heads or num_heads):
        raise ValueError(
            f"num_key_value_heads={num_key_value_heads} does not divide "
            f"num_heads={num_heads}."
        )
