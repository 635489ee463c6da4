"""The contract of positional encodings, and the three stages they act at."""

import inspect

import keras
from keras import ops

from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions
from keras_lengen.layers.positions.randomized_positions import (
    RandomizedPositions,
)


@keras.saving.register_keras_serializable(package="keras_lengen")
class PositionalEncoding(keras.layers.Layer):
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

    def __init__(self, *, sampler=None, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.sampler = OrdinalPositions() if sampler is None else sampler

    def build(self, query_shape, key_shape=None):
        pass

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
        return query if key is None else (query, key)

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
                stretches: the whole sequence is not known here.
        """
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
                lambda axis: _numbered(axis, mask), positions
            )
        if isinstance(start_index, int) and start_index == 0:
            return positions
        if self.sampler.draws or self.sampler.stretches:
            raise ValueError(
                f"start_index={start_index} needs the positions of the whole "
                f"sequence, which {type(self.sampler).__name__} does not know "
                "from a part of it: call it once for the whole sequence and "
                "pass `positions`."
            )
        return positions + start_index

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

    def build(self, query_shape):
        pass

    def call(
        self,
        embeddings,
        *,
        positions=None,
        start_index=0,
        training=None,
        mask=None,
    ):
        if positions is None:
            positions = self.sample_positions(
                embeddings,
                start_index=start_index,
                mask=mask,
                training=training,
            )
        return self.add_to_embeddings(embeddings, positions)


class _PairEncoding(PositionalEncoding):
    """What the two stages on pairs of queries and keys have in common."""

    def _pair_positions(
        self, query, key, positions, key_positions, start_index, training
    ):
        if positions is None:
            positions = self.sample_positions(
                query, start_index=start_index, training=training
            )
        if key_positions is None:
            tokens, keys = query.shape[1], key.shape[1]
            if tokens != keys and None not in (tokens, keys):
                raise ValueError(
                    f"{tokens} queries and {keys} keys cannot share "
                    "positions: pass `positions` and `key_positions`."
                )
            key_positions = positions
        return positions, key_positions


class RotaryEncoding(_PairEncoding):
    """An encoding that rotates queries and keys.

    Subclasses implement `rotate`. As a layer, it takes and returns a query
    alone or a query and a key, `(B, T, H, D)` or `(B, T, D)`. The call
    argument `length`, `(B,)` or scalar, tells encodings that depend on it how
    long the whole sequence will be; `None` for the number of keys.
    """

    stage = "rotation"

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
            key, key_positions = query, None
        flat = len(query.shape) == 3
        if flat:
            query = ops.expand_dims(query, 2)
            key = query if alone else ops.expand_dims(key, 2)
        positions, key_positions = self._pair_positions(
            query, key, positions, key_positions, start_index, training
        )
        query, key = self.rotate(
            query, key, positions, key_positions, length=length
        )
        if flat:
            query, key = ops.squeeze(query, 2), ops.squeeze(key, 2)
        return query if alone else (query, key)


class BiasEncoding(_PairEncoding):
    """An encoding that adds a bias to the attention scores.

    Subclasses implement `attention_bias`. As a layer, it takes a query
    `(B, T, H, D)` and a key `(B, S, H, D)` and returns the bias, float32 and
    broadcastable to `(B, H, T, S)`.
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
        key = query if key is None else key
        positions, key_positions = self._pair_positions(
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
            for name in self._sampler_arguments()
            if name in kwargs
        }
        sampler = self.sampler_class(**arguments)
        super().__init__(sampler=sampler, **kwargs)
        for name in self._sampler_arguments():
            setattr(self, name, getattr(sampler, name))

    @classmethod
    def _sampler_arguments(cls):
        parameters = inspect.signature(cls.sampler_class.__init__).parameters
        return [
            parameter.name
            for parameter in parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        ]

    def get_config(self):
        config = super().get_config()
        del config["sampler"]
        arguments = self._sampler_arguments()
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
        seed=None,
        **kwargs,
    ):
        super().__init__(
            max_position=max_position,
            resample=resample,
            evaluation=evaluation,
            ordered=ordered,
            seed=seed,
            **kwargs,
        )


def expand_positions(positions, axes):
    """Float32 positions with `axes` trailing axes of size one."""
    # float32, not the compute dtype: bfloat16 merges integers above 256.
    positions = ops.cast(positions, "float32")
    for _ in range(axes):
        positions = ops.expand_dims(positions, -1)
    return positions


def _numbered(positions, mask):
    """The first positions, in order, for the real tokens of `(B, T)`."""
    indices = ops.cumsum(ops.cast(mask, "int32"), axis=-1) - 1
    # Padding comes last, where it changes the rank of no other position.
    indices = ops.where(mask, indices, ops.shape(mask)[-1] - 1)
    if len(positions.shape) == 1:
        return ops.take(positions, indices)
    return ops.take_along_axis(positions, indices, axis=-1)
