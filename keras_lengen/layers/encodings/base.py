"""The contract of positional encodings, and the three stages they act at."""

import functools

import keras
from keras import ops

from keras_lengen.arguments import (
    check_boolean,
    check_instance,
    constructor_arguments,
)
from keras_lengen.layers.drawing import DrawingLayer
from keras_lengen.layers.positions.base import (
    PositionSampler,
    check_reach,
    check_sampler,
    check_tokens,
)
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions
from keras_lengen.layers.positions.randomized_positions import (
    RandomizedPositions,
)
from keras_lengen.layers.side_inputs import (
    INVALID_POSITION,
    NamedInputs,
    both,
    check_index,
    check_padding_mask,
    check_positions,
    check_rank,
    check_reference_length,
    check_same_size,
    compare_sizes,
    demand,
    find_size,
    format_size,
    is_integer,
    where_holds,
)


@keras.saving.register_keras_serializable(package="keras_lengen")
class PositionalEncoding(NamedInputs, DrawingLayer):
    """Answers how a position enters a model; by itself: not at all (NoPE).

    An encoding acts at one of three stages, each a function of positions:
    `add_to_embeddings` once before the blocks, `rotate` on queries and keys
    in every attention, `attention_bias` on the scaled scores in every
    attention. `MultiHeadAttention` and the models call the stages; used by
    itself as a layer, an encoding draws positions from its sampler and
    applies its own stage.

    Shapes: `B` batch, `T` query length, `S` key length, `H` heads, `D` width
    of a head, `M` width of the model. Positions are numbers of shape `(T,)`
    or `(B, T)`.

    Args:
        sampler: `PositionSampler` that numbers the tokens; `None` for 0, 1,
            2, ...

    Call arguments:
        positions: Positions of the tokens, or of the queries, `(T,)` or
            `(B, T)`; `None` draws them from the sampler.
        key_positions: Positions of the keys, `(S,)` or `(B, S)`; `None` for
            those of the queries, as many as there are.
        start_index: Index of the first token in the whole sequence, an integer
            or a scalar tensor of at least 0, where `positions` is `None` and
            the sampler knows a part of a sequence from the whole.
        training: Whether the call belongs to training.

    Returns:
        Where it is used by itself, tensors of the dtype that `dtype` says, the
        policy's compute dtype; a bias is always float32.

    Raises:
        ValueError: If an argument is out of range, a tensor has another shape
            than its encoding needs, or the widths that it was built for.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import NoPE
    >>> NoPE()(ops.ones((1, 3, 4))).shape
    TensorShape([1, 3, 4])

    Reference: Kazemnejad et al., 2023, section 5 (what a causal Transformer
    recovers without any encoding).
    https://arxiv.org/abs/2305.19466
    """

    stage: str | None = None
    """`"embeddings"`, `"rotation"`, `"bias"`, or `None` for no stage."""

    share_layers = True
    """Whether the attentions of a model share one encoding and its weights."""

    causal_only = False
    """Whether queries must see no later keys."""

    uses_length = False
    """Whether `rotate` depends on the length of the whole sequence."""

    defined_past_training = True
    """Whether positions larger than any of training mean something: by a
    formula, or as the last of the distances that are told apart. `False` where
    every position has a row of a table, which ends."""

    takes_pairs = False
    """Whether positions are a row and a column."""

    query_ranks: tuple = (4,)
    """Numbers of axes that queries and keys may have, where it is called."""

    reads_ranks = False
    """Whether positions are read by their rank among the keys, of which the
    queries must then be a part."""

    def __init__(self, *, sampler=None, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        sampler = check_sampler("sampler", sampler, pairs=self.takes_pairs)
        self.sampler = OrdinalPositions() if sampler is None else sampler

    def build(self, query_shape, key_shape=None):
        if self.stage is not None:
            self._check_rank(keras.KerasTensor(query_shape))

    def check_length(self, tokens, *, sampler=None, unit="tokens"):
        """Raises `ValueError` unless there are positions for a sequence.

        Args:
            tokens: Length of the longest sequence.
            sampler: `PositionSampler` that numbers the tokens; `None`: that of
                the encoding.
            unit: What is numbered, for the message.
        """
        sampler = self.sampler if sampler is None else sampler
        sampler.check_length(tokens, unit=unit)

    def check_widths(self, query_shape, *, name="query"):
        """Raises `ValueError` if the encoding was built for other widths.

        Args:
            query_shape: Shape of the queries, or of the embeddings.
            name: Name of the argument.
        """
        built = _find_query_shape(self.get_build_config())
        axes = {None: 0, "embeddings": 1, "rotation": 1, "bias": 2}[self.stage]
        if not axes or built is None:
            return
        wanted, got = tuple(built[-axes:]), tuple(query_shape[-axes:])
        if wanted != got:
            what = {1: "width", 2: "heads and their width"}[axes]
            raise ValueError(
                f"{name} must have the {what} {_join(wanted)}, which this "
                f"{type(self).__name__} was built for; got {_join(got)}: "
                "make another encoding for it."
            )

    def call(
        self,
        query,
        key=None,
        *,
        positions=None,
        key_positions=None,
        start_index=0,
        training=None,
    ):
        check_index("start_index", start_index)
        if key is None:
            _check_no_key_positions(key_positions)
        # They change nothing, but a wrong number of them is a mistake.
        for name, given, inputs in (
            ("positions", positions, query),
            ("key_positions", key_positions, key),
        ):
            if given is not None:
                self.given_positions(given, inputs, name=name)
        query = self._cast(query)
        return query if key is None else (query, self._cast(key))

    def _cast(self, features):
        return ops.cast(features, self.compute_dtype)

    def compute_output_shape(self, query_shape, key_shape=None):
        if self.stage == "bias":
            _, tokens, heads, _ = query_shape
            keys = tokens if key_shape is None else key_shape[1]
            # One bias for the batch, or one for each example.
            return (None, heads, tokens, keys)
        if key_shape is None or self.stage == "embeddings":
            return query_shape
        return (query_shape, key_shape)

    def compute_output_spec(self, query, key=None, positions=None, **kwargs):
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

    def _check_rank(self, query):
        """Name and right shape of the first input, or `ValueError`."""
        name, shape = "query", "(B, T, H, D)"
        if self.stage == "embeddings":
            name, shape = "embeddings", "(B, T, M)"
        elif 3 in self.query_ranks:
            shape += " or (B, T, D)"
        check_rank(name, query, self.query_ranks, shape)
        return name, shape

    def _check(self, query, key):
        """Whether queries and keys, or embeddings twice, have right shapes."""
        name, shape = self._check_rank(query)
        check_rank("key", key, (len(query.shape),), shape.replace("T", "S"))
        self.check_widths(query.shape, name=name)
        if key is query:
            return True
        # Examples, heads and widths.
        axes = (0, 2, -1) if len(query.shape) == 4 else (0, -1)
        return functools.reduce(
            both, (check_same_size(axis, query=query, key=key) for axis in axes)
        )

    def _find_pair_positions(
        self, query, key, positions, key_positions, start_index, training
    ):
        """Positions of the queries and of the keys, checked."""
        shapes_hold = self._check(query, key)
        if positions is None:
            positions = self.sample_positions(
                query, start_index=start_index, training=training
            )
        else:
            positions = self.given_positions(positions, query)
        if key_positions is not None:
            key_positions = self.given_positions(
                key_positions, key, name="key_positions"
            )
        elif key is query:
            key_positions = positions
        else:
            tokens, keys = find_size(query, 1), find_size(key, 1)
            holds = demand(
                compare_sizes(tokens, keys),
                format_size(tokens),
                " queries and ",
                format_size(keys),
                " keys cannot share positions: pass `positions` and "
                "`key_positions`.",
            )
            key_positions = keras.tree.map_structure(
                lambda axis: where_holds(holds, axis), positions
            )
        positions = keras.tree.map_structure(
            lambda axis: where_holds(shapes_hold, axis), positions
        )
        return positions, key_positions

    def _find_positions(
        self, embeddings, positions, start_index, mask, training
    ):
        """Positions of the tokens, checked."""
        if positions is None:
            return self.sample_positions(
                embeddings,
                start_index=start_index,
                mask=mask,
                training=training,
            )
        _, holds = check_padding_mask(mask, embeddings, name="mask")
        return keras.tree.map_structure(
            lambda axis: where_holds(holds, axis),
            self.given_positions(positions, embeddings),
        )

    def given_positions(self, positions, inputs, *, name="positions"):
        """Returns a caller's positions, or raises `ValueError`.

        Args:
            positions: Numbers `(T,)` or `(B, T)`, or a pair of them where the
                encoding takes pairs.
            inputs: `(B, T, ...)`, the tokens; only its shape is read.
            name: Name of the argument.
        """
        return check_positions(positions, inputs, name=name)

    def add_to_embeddings(self, embeddings, positions):
        return embeddings

    def rotate(
        self, query, key, query_positions, key_positions, *, length=None
    ):
        return query, key

    def attention_bias(
        self, query, key, query_positions, key_positions, *, causal=False
    ):
        return None

    def check_positions(self, positions):
        """Raises `ValueError` if positions have no place in the encoding."""

    def sample_positions(
        self,
        inputs,
        *,
        start_index=0,
        mask=None,
        lengths=None,
        reference_length=None,
        training=None,
    ):
        """Positions of the tokens of `inputs`, by the sampler.

        Args:
            inputs: Tensor `(B, T, ...)`; only its shape is read.
            start_index: Index of the first token in the whole sequence.
            mask: `(B, T)`, true for real tokens. These are numbered in order,
                wherever the padding stands.
            lengths: True lengths, `(B,)` or scalar, of sequences padded at
                the end; at most one of `mask` and `lengths`.
            reference_length: Length that interpolating samplers scale by,
                `(B,)` or scalar; `None` for the true one.
            training: Whether the call belongs to training.

        Raises:
            ValueError: If `start_index` is given to a sampler that draws or
                stretches: the whole sequence is not known here. If a mask or
                lengths are not those of the tokens.
        """
        check_tokens(inputs)
        start_index = check_index("start_index", start_index)
        if mask is not None and lengths is not None:
            raise ValueError(
                "give at most one of mask and lengths: both say which tokens "
                "are padding."
            )
        mask, mask_holds = check_padding_mask(mask, inputs, name="mask")
        if mask is not None:
            lengths = ops.sum(ops.cast(mask, "int32"), axis=-1)
        positions = self.sampler(
            inputs,
            lengths=lengths,
            reference_length=reference_length,
            training=training,
        )
        if mask is not None:
            # Of the rows and of the columns where there are both.
            positions = keras.tree.map_structure(
                lambda axis: where_holds(
                    mask_holds, _number_real_tokens(axis, mask)
                ),
                positions,
            )
        if isinstance(start_index, int) and start_index == 0:
            return positions
        if self.sampler.draws or self.sampler.stretches:
            start = start_index if isinstance(start_index, int) else "a tensor"
            raise ValueError(
                f"start_index={start} needs the positions of the whole "
                f"sequence, which {type(self.sampler).__name__} does not know "
                "from a part of it: call it once for the whole sequence and "
                "pass `positions`."
            )
        holds = True
        if not isinstance(start_index, int):
            start_index = ops.cast(start_index, "int32")
            holds = demand(
                start_index >= 0,
                "start_index must be at least 0; got ",
                start_index,
                ".",
            )
        return where_holds(holds, positions + start_index)

    def get_config(self):
        return {
            **super().get_config(),
            "sampler": keras.saving.serialize_keras_object(self.sampler),
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        if config.get("sampler") is not None:
            config["sampler"] = keras.saving.deserialize_keras_object(
                config["sampler"]
            )
        return cls(**config)


class AbsoluteEncoding(PositionalEncoding):
    """An encoding that is added to the embeddings.

    Subclasses implement `add_to_embeddings`.
    """

    stage = "embeddings"
    query_ranks = (3,)

    def build(self, query_shape):
        super().build(query_shape)

    def call(
        self,
        embeddings,
        *,
        positions=None,
        start_index=0,
        training=None,
        mask=None,
    ):
        self._check(embeddings, embeddings)
        positions = self._find_positions(
            embeddings, positions, start_index, mask, training
        )
        return self.add_to_embeddings(self._cast(embeddings), positions)

    def compute_output_spec(self, embeddings, positions=None, **kwargs):
        return super().compute_output_spec(embeddings, positions=positions)

    def compute_output_shape(self, embeddings_shape):
        return super().compute_output_shape(embeddings_shape)


class RotaryEncoding(PositionalEncoding):
    """An encoding that rotates queries and keys.

    Subclasses implement `rotate`. As a layer, it takes and returns a query
    alone or a query and a key, `(B, T, H, D)` or `(B, T, D)`. The call
    argument `length`, `(B,)` or scalar, tells encodings that depend on it how
    long the whole sequence will be; `None` for the number of keys.
    """

    stage = "rotation"
    query_ranks = (3, 4)

    def call(
        self,
        query,
        key=None,
        *,
        positions=None,
        key_positions=None,
        start_index=0,
        length=None,
        training=None,
    ):
        alone = key is None
        if alone:
            key, key_positions = query, _check_no_key_positions(key_positions)
        length = check_reference_length(length, query, name="length")
        positions, key_positions = self._find_pair_positions(
            query, key, positions, key_positions, start_index, training
        )
        query = self._cast(query)
        key = query if alone else self._cast(key)
        flat = len(query.shape) == 3
        if flat:
            query = ops.expand_dims(query, 2)
            key = query if alone else ops.expand_dims(key, 2)
        query, key = self.rotate(
            query, key, positions, key_positions, length=length
        )
        if flat:
            query, key = ops.squeeze(query, 2), ops.squeeze(key, 2)
        return query if alone else (query, key)


class BiasEncoding(PositionalEncoding):
    """An encoding that adds a bias to the attention scores.

    Subclasses implement `attention_bias`. As a layer, it takes a query
    `(B, T, H, D)` and a key `(B, S, H, D)` and returns the bias, float32
    whatever the dtype policy, and broadcastable to `(B, H, T, S)`. The call
    argument `causal` says whether later keys are going to be masked.
    """

    stage = "bias"

    def call(
        self,
        query,
        key=None,
        *,
        causal=False,
        positions=None,
        key_positions=None,
        start_index=0,
        training=None,
    ):
        check_boolean("causal", causal)
        if key is None:
            key, key_positions = query, _check_no_key_positions(key_positions)
        positions, key_positions = self._find_pair_positions(
            query, key, positions, key_positions, start_index, training
        )
        return self.attention_bias(
            query, key, positions, key_positions, causal=causal
        )

    def compute_mask(self, *args, **kwargs):
        return None


class Preset(PositionalEncoding):
    """Makes a preset of an encoding: the same with a sampler of its own.

    Mixed in before the encoding's class. Takes the arguments of
    `sampler_class` beside those of the encoding; a subclass names them in its
    own constructor.
    """

    sampler_class: type[PositionSampler]
    """The class of the sampler."""

    def __init__(self, **kwargs):
        if kwargs.pop("sampler", None) is not None:
            raise ValueError(
                f"{type(self).__name__} brings its own sampler: pass the "
                "sampler to the plain encoding instead."
            )
        arguments = {
            name: kwargs.pop(name)
            for name in self._list_sampler_arguments()
            if name in kwargs
        }
        sampler = self.sampler_class(**arguments)
        super().__init__(sampler=sampler, **kwargs)
        for name in self._list_sampler_arguments():
            setattr(self, name, getattr(sampler, name))

    def check_length(self, tokens, *, sampler=None, unit="tokens"):
        # Its name is the one that users know, not that of its sampler.
        check_reach(self, tokens, unit)
        super().check_length(tokens, sampler=sampler, unit=unit)

    @classmethod
    def _list_sampler_arguments(cls):
        return list(constructor_arguments(cls.sampler_class))

    def get_config(self):
        config = super().get_config()
        del config["sampler"]
        arguments = self._list_sampler_arguments()
        return {**config, **{name: getattr(self, name) for name in arguments}}


class Randomized(Preset):
    """Makes a preset of an encoding: the same with randomized positions."""

    sampler_class = RandomizedPositions

    def __init__(
        self,
        *,
        max_position=2048,
        resample="batch",
        evaluation="random",
        ordered=True,
        include_zero=False,
        seed=None,
        **kwargs,
    ):
        super().__init__(
            max_position=max_position,
            resample=resample,
            evaluation=evaluation,
            ordered=ordered,
            include_zero=include_zero,
            seed=seed,
            **kwargs,
        )


def expand_positions(positions, axes):
    """Float32 positions with `axes` trailing axes of size one."""
    # float32, not the compute dtype: bfloat16 merges integers above 256.
    numbers = ops.cast(positions, "float32")
    if is_integer(positions):
        invalid = positions == INVALID_POSITION
        numbers = ops.where(invalid, float("nan"), numbers)
    positions = numbers
    for _ in range(axes):
        positions = ops.expand_dims(positions, -1)
    return positions


def _number_real_tokens(positions, mask):
    """The first positions, in order, for the real tokens of `(B, T)`."""
    indices = ops.cumsum(ops.cast(mask, "int32"), axis=-1) - 1
    # Padding comes last, where it changes the rank of no other position.
    indices = ops.where(mask, indices, ops.shape(mask)[-1] - 1)
    if len(positions.shape) == 1:
        return ops.take(positions, indices)
    return ops.take_along_axis(positions, indices, axis=-1)


def check_encoding(name, encoding, *, optional=True):
    """Returns an encoding, or `None` if optional, or raises `ValueError`."""
    if isinstance(encoding, PositionSampler):
        raise ValueError(
            f"{name} must be a PositionalEncoding; got the sampler "
            f"{type(encoding).__name__}, which only numbers tokens: pass it to "
            "an encoding, as in RoPE(sampler=...)."
        )
    return check_instance(
        name, encoding, PositionalEncoding, example="RoPE()", optional=optional
    )


def _check_no_key_positions(key_positions):
    if key_positions is not None:
        raise ValueError(
            "key_positions are given without a key: pass the key too, or the "
            "positions of the query as `positions`."
        )


def _find_query_shape(build_config):
    """The first of the shapes that a layer was built with, or `None`."""
    if not build_config:
        return None
    shapes = build_config.get("shapes_dict") or build_config
    return next(iter(shapes.values()), None)


def _join(numbers):
    return " x ".join(map(str, numbers))
