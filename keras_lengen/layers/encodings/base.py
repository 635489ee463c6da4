"""Base class of the positional encodings."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    Instance,
    InvalidArgument,
)
from keras_lengen.checks.constructors import WithArguments, argument
from keras_lengen.checks.guards import (
    INVALID_POSITION,
    guard,
    is_integer,
)
from keras_lengen.checks.inputs import (
    NamedInputs,
    check_rank,
    compare_sizes,
    find_size,
    format_size,
    guard_same_size,
    read_index,
    read_mask,
    read_positions,
)
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.layers.positions.placing import sample_positions
from keras_lengen.layers.positions.sampler_argument import SamplerArgument
from keras_lengen.layers.random_layer import RandomLayer
from keras_lengen.types import (
    InputShape,
    Positions,
    Shape,
    Size,
    Tensor,
    TensorLike,
)

_BASES = {
    "embeddings": "AbsoluteEncoding",
    "rotation": "RotaryEncoding",
    "bias": "BiasEncoding",
}
"""The base class of the encodings of each stage."""

_STAGES = {
    "add_to_embeddings": "embeddings",
    "rotate": "rotation",
    "attention_bias": "bias",
}
"""The stage of each method that an encoding may implement."""


_COMBINED: dict[str, Callable[[Iterable[bool]], bool]] = {
    "share_layers": all,
    "shift_invariant": all,
    "takes_fractions": all,
    "takes_negative": all,
    "defined_past_training": all,
    "causal_only": any,
    "uses_length": any,
    "reads_ranks": any,
    "uses_token_index": any,
    "requires_increasing_positions": any,
    "masks_keys": any,
}
"""How the attributes of an encoding follow from those that it is made of."""


class AttentionSpec(NamedTuple):
    """Properties of the attention that `prepare` reads beside positions.

    Attributes:
        heads: int, number of heads `H`.
        width: int, width `D` of a head.
        dtype: str, dtype of queries and keys.
        batch_size: int, or `None` if it is not known.
        length: Length of the whole sequence, as for `rotate`.
        causal: bool, whether keys at larger positions are masked, as for
            `attention_bias`.
    """

    heads: int
    width: int
    dtype: str = "float32"
    batch_size: int | None = None
    length: Size | None = None
    causal: bool = False

    @classmethod
    def of(cls, query: Tensor, **others: Any) -> Self:
        """Makes the description for queries `(B, T, H, D)`."""
        batch_size, _, heads, width = query.shape
        dtype = keras.backend.standardize_dtype(query.dtype)
        return cls(heads, width, dtype, batch_size, **others)


def pass_on(prepared: Any) -> dict[str, Any]:
    """Makes the keyword argument `prepared`, which not all encodings have."""
    return {} if prepared is None else {"prepared": prepared}


@keras.saving.register_keras_serializable(package="keras_lengen")
class PositionalEncoding(WithArguments, NamedInputs, RandomLayer):
    """Base class of positional encodings.

    An encoding brings the positions of the tokens into a model. It acts at
    one of three stages, each with a base class of its own:

    - `AbsoluteEncoding.add_to_embeddings`, called once before the first block,
    - `RotaryEncoding.rotate`, called on the queries and keys of every
      attention layer, or
    - `BiasEncoding.attention_bias`, called for the scaled scores of every
      attention layer.

    `MultiHeadAttention` and the models call these methods. `prepare` computes
    what all layers of a model share, such as cosines or distances, once per
    call of the model. An encoding can also be called as a layer: it then takes
    positions from its sampler, unless they are given, and applies its own
    stage.

    Shapes: `B` batch, `T` query length, `S` key length, `H` heads, `D` width
    of a head, `M` width of the model. Positions are integers or floats of
    shape `(T,)` or `(B, T)`.

    Args:
        sampler: `PositionSampler` that assigns a position to every token, or
            `None` for positions 0, 1, 2, ...

    Call arguments:
        query: Float tensor `(B, T, H, D)`. Encodings of the embeddings take
            `embeddings` `(B, T, M)` instead; NoPE accepts any shape.
        key: Float tensor `(B, S, H, D)`, or `None` if there is only a query.
        positions: Positions of the tokens, or of the queries: tensor `(T,)` or
            `(B, T)`, or `None` to take them from the sampler.
        key_positions: Positions of the keys: tensor `(S,)` or `(B, S)`, or
            `None` if the keys have the positions of the queries, which
            requires `S` to equal `T`.
        start_index: int or scalar integer tensor, from 0 to `2 ** 24`. Index of
            the first token in the whole sequence, used if `positions` is
            `None`. Values other than 0 need a sampler that can compute the
            positions of a part of a sequence, such as `OrdinalPositions`.
        training: bool or `None`, whether the call belongs to training.

    Returns:
        Called as a layer: the embeddings, the query, or a pair of query and
        key, with the shapes of the inputs and the compute dtype of the layer's
        dtype policy; or a bias, always float32, broadcastable to
        `(B, H, T, S)`.

    Raises:
        ValueError: If an argument is out of range, if a tensor does not have
            the shape that the encoding needs, or if its widths are not those
            that the encoding was built for.

        TypeError: If a subclass implements a stage that is not its own.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import PositionalEncoding, RoPE
    >>> isinstance(RoPE(), PositionalEncoding)
    True
    """

    sampler: SamplerArgument = argument(SamplerArgument(), default=None)

    stage: ClassVar[str | None] = None
    """Where the encoding acts: `"embeddings"`, `"rotation"`, `"bias"`, or
    `None` for nowhere."""

    share_layers = True
    """Whether all attention layers of a model share one encoding and its
    weights."""

    causal_only = False
    """Whether the encoding works in causal attention only."""

    uses_length = False
    """Whether `rotate` depends on the length of the whole sequence."""

    defined_past_training = True
    """Whether the encoding is defined for positions larger than all those of
    training: a formula computes it, or all large distances are treated alike.
    `False` if every position has its own row in a table."""

    shift_invariant = False
    """Whether only differences of positions matter."""

    takes_fractions = True
    """Whether positions may be fractions. `False` if each position has its own
    row in a table."""

    takes_negative = True
    """Whether positions may be below 0."""

    position_axes = 1
    """How many positions a token has: 1, or 2 for a row and a column."""

    query_ranks: ClassVar[tuple[int, ...]] = (4,)
    """Numbers of axes that queries and keys may have when the encoding is
    called as a layer."""

    reads_ranks = False
    """Whether the encoding uses the rank of a position among the positions of
    the keys. Every query must then be one of the keys."""

    uses_token_index = False
    """Whether the encoding uses the order of the tokens and not their
    positions. Its methods then get the indices of the tokens as positions."""

    requires_increasing_positions = False
    """Whether, in causal attention, no token may have a larger position than a
    later token, unless the sampler does not keep the order of the tokens."""

    masks_keys = False
    """Whether the bias of some pairs of tokens is `HIDDEN`."""

    num_rotations = 1
    """How many rotations of each query and key `rotate` returns, side by side
    along the axis of the features."""

    reads_key_positions = False
    """Whether `multiply` reads the positions of all queries and keys."""

    reads_inputs = False
    """Whether a rotation depends on the features of the tokens. Attention then
    calls `angle_increments` and `rotate_by` instead of `rotate`, and needs keys
    that are the queries' own tokens; `build` gets the shapes of queries, keys
    and features."""

    def combine_traits(self, *parts: "PositionalEncoding") -> None:
        """Sets class attributes to those of an encoding made of others."""
        for name in _COMBINED.keys() - self.arguments().keys():
            values = [getattr(part, name) for part in parts]
            setattr(self, name, _COMBINED[name](values))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for method, stage in _STAGES.items():
            if method in vars(cls) and cls.stage is None:
                raise TypeError(
                    f"{cls.__name__} implements `{method}` but does not say "
                    f"that it acts there: derive it from {_BASES[stage]}, or "
                    f'set stage = "{stage}".'
                )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.supports_masking = True
        self.check_numbers(self.sampler)

    def check_numbers(self, sampler: PositionSampler) -> None:
        """Checks that the encoding is defined at the positions of a sampler.

        Args:
            sampler: `PositionSampler`.

        Raises:
            ValueError: If the sampler may give fractions or negative positions
                at which the encoding is not defined.
        """
        given, own = type(sampler).__name__, type(self).__name__
        if sampler.fractional and not self.takes_fractions:
            raise ValueError(
                f"sampler={given} gives fractions, but {own} needs integers to "
                "look up in its table: choose another sampler, or an encoding "
                "without a table, such as SinusoidalEncoding."
            )
        if sampler.negative and not self.takes_negative:
            raise ValueError(
                f"sampler={given} may give negative positions, at which {own} "
                "is not defined: choose another sampler, such as "
                "ShiftedPositions, or another encoding, such as LogKERPLE."
            )

    def build(
        self, query_shape: InputShape, key_shape: InputShape | None = None
    ) -> None:
        """Checks the input shape. Subclasses also create their weights here.

        Args:
            query_shape: tuple, shape `(B, T, H, D)` of the queries or
                `(B, T, M)` of the embeddings, with `None` for unknown sizes.
            key_shape: tuple, shape `(B, S, H, D)` of the keys, or `None` if
                there is only a query.

        Raises:
            ValueError: If the shape does not have the number of axes that the
                stage needs.
        """
        if self.stage is not None:
            self._check_rank(keras.KerasTensor(query_shape))

    def check_length(
        self,
        tokens: int,
        *,
        sampler: PositionSampler | None = None,
        unit: str = "tokens",
    ) -> None:
        """Checks that a sequence is not longer than the range of positions.

        Args:
            tokens: int, number of tokens of the longest sequence.
            sampler: `PositionSampler` that assigns the positions, or `None`
                for the encoding's own.
            unit: str, what is counted, for the error message.

        Raises:
            ValueError: If there are not enough positions for the sequence.
        """
        sampler = self.sampler if sampler is None else sampler
        sampler.check_length(tokens, unit=unit)

    def check_widths(
        self, query_shape: InputShape, *, name: str = "query"
    ) -> None:
        """Checks that the encoding was built for the widths of a tensor.

        Args:
            query_shape: tuple, shape `(B, T, H, D)` of the queries or
                `(B, T, M)` of the embeddings.
            name: str, name of the argument, for the error message.

        Raises:
            ValueError: If the encoding was built for another width or, as a
                bias or with weights, for another number of heads.
        """
        built = _find_query_shape(self.get_build_config())
        axes = {None: 0, "embeddings": 1, "rotation": 1, "bias": 2}[self.stage]
        if not axes or built is None:
            return
        if self.stage == "rotation" and self.weights:
            # (B, T, D) is one head.
            built, query_shape = (
                shape if len(shape) == 4 else (*shape[:2], 1, *shape[2:])
                for shape in (built, query_shape)
            )
            axes = 2
        wanted, got = tuple(built[-axes:]), tuple(query_shape[-axes:])
        if wanted != got:
            what = {1: "width", 2: "heads and their width"}[axes]
            raise ValueError(
                f"{name} must have the {what} {_join(wanted)}, which this "
                f"{type(self).__name__} was built for; got {_join(got)}: "
                "make another encoding for it."
            )

    if TYPE_CHECKING:

        def __call__(
            self,
            query: TensorLike,
            key: TensorLike | None = None,
            *,
            positions: TensorLike | None = None,
            key_positions: TensorLike | None = None,
            start_index: Size = 0,
            training: bool | None = None,
        ) -> Any: ...

    def call(
        self,
        query: TensorLike,
        key: TensorLike | None = None,
        *,
        positions: TensorLike | None = None,
        key_positions: TensorLike | None = None,
        start_index: Size = 0,
        training: bool | None = None,
    ) -> Any:
        read_index("start_index", start_index)
        if key is None:
            check_no_key_positions(key_positions)
        # NoPE ignores positions, but a wrong number of them is a mistake.
        for name, given, inputs in (
            ("positions", positions, query),
            ("key_positions", key_positions, key),
        ):
            if given is not None:
                self.given_positions(given, inputs, name=name)
        query = self._cast(query)
        return query if key is None else (query, self._cast(key))

    def _cast(self, features: Tensor) -> Tensor:
        return ops.cast(features, self.compute_dtype)

    def compute_output_shape(
        self, query_shape: Shape, key_shape: Shape | None = None
    ) -> Any:
        if self.stage == "bias":
            _, tokens, heads, _ = query_shape
            keys = tokens if key_shape is None else key_shape[1]
            # `None`: the first axis is 1 if all examples share one bias.
            return (None, heads, tokens, keys)
        if key_shape is None or self.stage == "embeddings":
            return query_shape
        return (query_shape, key_shape)

    def compute_output_spec(
        self,
        query: Tensor,
        key: Tensor | None = None,
        positions: TensorLike | None = None,
        **kwargs: Any,
    ) -> Any:
        if self.stage is not None:
            self._check(query, query if key is None else key)
            if positions is None:
                self.sampler.compute_output_spec(query)
        shapes = self.compute_output_shape(
            *(tensor.shape for tensor in (query, key) if tensor is not None)
        )
        dtype = "float32" if self.stage == "bias" else self.compute_dtype
        return keras.tree.map_shape_structure(
            lambda shape: keras.KerasTensor(shape, dtype=dtype), shapes
        )

    def _check_rank(self, query: Tensor) -> tuple[str, str]:
        """Checks the number of axes of the first input.

        Returns:
            The input's argument name and its expected shape, two strings.
        """
        name, shape = "query", "(B, T, H, D)"
        if self.stage == "embeddings":
            name, shape = "embeddings", "(B, T, M)"
        elif 3 in self.query_ranks:
            shape += " or (B, T, D)"
        check_rank(name, query, self.query_ranks, shape)
        if 0 in query.shape[2:]:
            raise ValueError(
                f"{name} must have shape {shape}, with at least one feature; "
                f"got {tuple(query.shape)}."
            )
        return name, shape

    def _check(self, query: Tensor, key: Tensor) -> None:
        """Checks the axes of query and key, or of embeddings given twice."""
        name, shape = self._check_rank(query)
        check_rank("key", key, (len(query.shape),), shape.replace("T", "S"))
        self.check_widths(query.shape, name=name)
        self._guard_sizes((), query, key)

    def _guard_sizes(self, guarded: Any, query: Tensor, key: Tensor) -> Any:
        """Guards tensors by the condition that query and key fit each other."""
        # The axes of examples, heads and features.
        for axis in (0, 2, -1) if len(query.shape) == 4 else (0, -1):
            guarded = guard_same_size(guarded, axis, query=query, key=key)
        return guarded

    def _find_pair_positions(
        self,
        query: Tensor,
        key: Tensor,
        positions: TensorLike | None,
        key_positions: TensorLike | None,
        start_index: Size,
        training: bool | None,
    ) -> tuple[Positions, Positions]:
        """Returns checked positions of the queries and of the keys."""
        self._check(query, key)
        if positions is None:
            positions = sample_positions(
                self.sampler, query, start_index=start_index, training=training
            )
        else:
            positions = self.given_positions(positions, query)
        if key_positions is not None:
            key_positions = self.given_positions(
                key_positions, key, name="key_positions"
            )
        elif key is query:
            return positions, positions
        else:
            tokens, keys = find_size(query, 1), find_size(key, 1)
            key_positions = guard(
                positions,
                compare_sizes(tokens, keys),
                format_size(tokens),
                " queries and ",
                format_size(keys),
                " keys cannot share positions: pass `positions` and "
                "`key_positions`.",
            )
        return self._guard_sizes(positions, query, key), key_positions

    def _find_positions(
        self,
        embeddings: Tensor,
        positions: TensorLike | None,
        start_index: Size,
        mask: TensorLike | None,
        training: bool | None,
    ) -> Positions:
        """Returns checked positions of the tokens, given or sampled."""
        if positions is None:
            return sample_positions(
                self.sampler,
                embeddings,
                start_index=start_index,
                mask=mask,
                training=training,
            )
        positions = self.given_positions(positions, embeddings)
        _, positions = read_mask(
            mask, positions, inputs=embeddings, name="mask"
        )
        return positions

    def given_positions(
        self, positions: TensorLike, inputs: Tensor, *, name: str = "positions"
    ) -> Positions:
        """Checks positions that the caller passes.

        Args:
            positions: Integers or floats, a tensor, array or list of shape
                `(T,)` or `(B, T)`; a pair of these, rows and columns, if the
                encoding takes pairs.
            inputs: Tensor `(B, T, ...)`, one entry per token; only its shape
                is read.
            name: str, name of the argument, for the error message.

        Returns:
            The positions as an integer or float tensor `(T,)` or `(B, T)`, or
            as a pair of such tensors.

        Raises:
            ValueError: If the positions are not finite numbers from `-2 ** 24`
                to `2 ** 24`, one for each token.
        """
        return read_positions(positions, inputs, name=name)

    def prepare(
        self,
        query_positions: Positions,
        key_positions: Positions,
        spec: AttentionSpec,
    ) -> Any:
        """Computes what all attention layers of a model share.

        A model calls it once and passes the result as `prepared` to `rotate` or
        `attention_bias` of all its layers; without it, these methods compute
        the same themselves. Weights may be read only if `share_layers`.

        Args:
            query_positions: As for `rotate` and `attention_bias`.
            key_positions: As for `rotate` and `attention_bias`.
            spec: `AttentionSpec`.

        Returns:
            A structure of tensors, or `None` if they share nothing.
        """
        return None

    def add_to_embeddings(
        self, embeddings: Tensor, positions: Positions
    ) -> Tensor:
        """Adds the encoded positions to the embeddings (first stage).

        Args:
            embeddings: Float tensor `(B, T, M)`.
            positions: Integer or float tensor `(T,)` or `(B, T)`, the position
                of each token; a pair of these if the encoding takes pairs.

        Returns:
            Float tensor `(B, T, M)` of the dtype of `embeddings`; `embeddings`
            unchanged if the encoding acts at another stage.

        Raises:
            ValueError: If the encoding is not defined at the positions, or
                takes pairs and gets none.
        """
        return embeddings

    def rotate(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: Positions,
        key_positions: Positions,
        *,
        length: Size | None = None,
        prepared: Any = None,
    ) -> tuple[Tensor, Tensor]:
        """Rotates queries and keys by their positions (second stage).

        Args:
            query: Float tensor `(B, T, H, D)`.
            key: Float tensor `(B, S, H, D)`; it may have fewer heads than the
                query.
            query_positions: Integer or float tensor `(T,)` or `(B, T)`, the
                position of each query; a pair of these if the encoding takes
                pairs.
            key_positions: The same for the keys, `(S,)` or `(B, S)`.
            length: Length of the whole sequence in tokens, a number or a
                tensor `()` or `(B,)`; `None` for the number of keys. Read only
                if `uses_length`.
            prepared: What `prepare` returned for these positions, or `None`.

        Returns:
            The rotated query and key, with the shapes and dtypes of the
            arguments, but `num_rotations` times as wide; both unchanged if the
            encoding acts at another stage.

        Raises:
            ValueError: If the encoding is not defined at the positions, or
                takes pairs and gets none.
        """
        return query, key

    def check_features(self, key_shape: Shape, inputs_shape: Shape) -> None:
        """Checks that the encoding was built for such keys and features.

        Called if `reads_inputs`.

        Args:
            key_shape: tuple, shape `(B, S, heads, D)` of the keys.
            inputs_shape: tuple, shape `(B, T, M)` of the features.

        Raises:
            ValueError: If the encoding was built for another number of heads
                or another width of the features.
        """
        raise NotImplementedError

    def angle_increments(self, inputs: Tensor) -> Tensor:
        """Computes what each token contributes to a rotation.

        Called if `reads_inputs`. A cache holds the result after the features
        of each key.

        Args:
            inputs: Features of the tokens, `(B, T, M)`.

        Returns:
            float32 `(B, T, heads, D / 2)`, with the heads of the keys.
        """
        raise NotImplementedError

    def rotate_by(
        self,
        query: Tensor,
        key: Tensor,
        steps: Tensor,
        indices: Tensor,
        mask: Tensor | None = None,
        runs: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Rotates queries and keys by the steps of the tokens.

        Called if `reads_inputs`.

        Args:
            query: Float tensor `(B, T, H, D)`.
            key: Float tensor `(B, S, heads, D)`, of the whole sequence; the
                queries are some of its tokens.
            steps: `(B, S, heads, D / 2)`, what `angle_increments` returns for
                the whole sequence.
            indices: Indices of the queries among the keys, int32 `(T,)`.
            mask: Boolean tensor `(B, S)`, true for real tokens, or `None`.
            runs: Run of each token, int32 `(B, S)`; a token is not mixed with
                those of an earlier run. `None`: each row is one run.

        Returns:
            The rotated query and key, with the shapes and dtypes of the
            arguments.
        """
        raise NotImplementedError

    def multiply(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: Positions,
        key_positions: Positions,
    ) -> Tensor:
        """Computes the products of queries and keys that attention scores are.

        Args:
            query: float32 `(B, T, H, num_rotations * D)`, rotated if the
                encoding rotates.
            key: The same for the keys, `(B, S, H, num_rotations * D)`.
            query_positions: As for `rotate`.
            key_positions: As for `rotate`.

        Returns:
            float32 `(B, H, T, S)`, neither scaled nor masked.
        """
        return ops.einsum("bthd,bshd->bhts", query, key)

    def attention_bias(
        self,
        query: Tensor,
        key: Tensor,
        query_positions: Positions,
        key_positions: Positions,
        *,
        causal: bool = False,
        prepared: Any = None,
    ) -> Tensor | None:
        """Computes the bias to be added to scaled scores (third stage).

        Args:
            query: Float tensor `(B, T, H, D)`.
            key: Float tensor `(B, S, H, D)`.
            query_positions: Integer or float tensor `(T,)` or `(B, T)`, the
                position of each query; a pair of these if the encoding takes
                pairs.
            key_positions: The same for the keys, `(S,)` or `(B, S)`.
            causal: bool, whether the attention masks keys at larger positions:
                those of later tokens, if positions keep the order of the
                tokens.
            prepared: What `prepare` returned for these positions, or `None`.

        Returns:
            float32 tensor that broadcasts to `(B, H, T, S)`, or `None` if the
            encoding acts at another stage.

        Raises:
            ValueError: If the encoding takes pairs and gets none.
        """
        return None

    def check_positions(self, positions: Tensor) -> None:
        """Checks that the encoding is defined at the positions.

        Args:
            positions: Integer or float tensor `(T,)` or `(B, T)`.

        Raises:
            ValueError: If the encoding is not defined at a position; encodings
                without a table never raise.
        """


def expand_positions(positions: Tensor, axes: int) -> Tensor:
    """Casts positions to float32 and adds `axes` trailing axes of size one.

    Invalid integer positions become NaN.
    """
    # float32, not the compute dtype: bfloat16 merges integers above 256.
    numbers = ops.cast(positions, "float32")
    if is_integer(positions):
        invalid = positions == INVALID_POSITION
        numbers = ops.where(invalid, float("nan"), numbers)
    positions = numbers
    for _ in range(axes):
        positions = ops.expand_dims(positions, -1)
    return positions


def number_by_index(
    positions: Tensor,
    key_positions: Tensor,
    indices: Tensor,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Replaces positions by the indices of the tokens.

    Args:
        positions: Integer or float tensor `(T,)` or `(B, T)`.
        key_positions: Integer or float tensor `(S,)` or `(B, S)`.
        indices: Indices of the queries among the keys, int32 `(T,)`.
        mask: Boolean tensor `(B, S)`, true for real keys, or `None`. Padding
            gets the index `S`, which is later than all queries.

    Returns:
        Indices of the queries and of the keys, float32, NaN where a position
        is invalid. Their shapes are those of the positions, or `(B, S)` if
        there is a mask.
    """
    keys = ops.arange(ops.shape(key_positions)[-1], dtype="int32")
    if mask is not None:
        keys = ops.where(mask, keys, ops.shape(key_positions)[-1])
    # Adds 0 to valid positions and NaN to invalid ones.
    return tuple(
        ops.cast(numbers, "float32") + 0 * expand_positions(given, 0)
        for numbers, given in ((indices, positions), (keys, key_positions))
    )


class EncodingArgument(Instance[PositionalEncoding]):
    """An encoding.

    Args:
        example: Class of an encoding that needs no arguments.
        **kwargs: Arguments of `Argument`.
    """

    def __init__(
        self,
        example: type[PositionalEncoding] = PositionalEncoding,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            PositionalEncoding, "RoPE()", example=example, **kwargs
        )

    @property
    def examples(self) -> tuple[PositionalEncoding, ...]:
        return (self.example(),)

    def __set__(self, instance: Any, value: PositionalEncoding | None) -> None:
        super().__set__(instance, value)

    def convert(self, value: Any) -> PositionalEncoding:
        if isinstance(value, PositionSampler):
            raise InvalidArgument(
                "a PositionalEncoding",
                f"the sampler {type(value).__name__}, which only numbers "
                "tokens: pass it to an encoding, as in RoPE(sampler=...)",
            )
        return super().convert(value)

    def serialize(self, value: PositionalEncoding) -> Any:
        config = super().serialize(value)
        # The layer around the encoding builds it, perhaps for another width.
        config.pop("build_config", None)
        return config


def check_no_key_positions(key_positions: TensorLike | None) -> None:
    """Raises `ValueError` if there are positions of keys without keys."""
    if key_positions is not None:
        raise ValueError(
            "key_positions are given without a key: pass the key too, or the "
            "positions of the query as `positions`."
        )


def _find_query_shape(build_config: dict[str, Any] | None) -> Any:
    """Finds the first of the shapes that a layer was built with, or `None`."""
    if not build_config:
        return None
    shapes = build_config.get("shapes_dict") or build_config
    return next(iter(shapes.values()), None)


def _join(numbers: Iterable[int | None]) -> str:
    return " x ".join(map(str, numbers))
