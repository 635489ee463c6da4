"""The check of encodings and samplers names what a class does wrong."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.checks.arguments import Number
from keras_lengen.checks.constructors import argument
from keras_lengen.conformance import check_conformance
from keras_lengen.layers import (
    ENCODINGS,
    SAMPLERS,
    ALiBi,
    BiasEncoding,
    LearnedEncoding,
    OrdinalPositions,
    PositionalEncoding,
    PositionSampler,
    PowerKERPLE,
    RandomizedPositions,
    RandomizedRoPE,
    RoPE,
    SinusoidalEncoding,
    T5Bias,
)
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.wrong import Wrong

WRONG = Wrong()
wrong = WRONG.add


@wrong("cannot be made from its configuration")
class Forgetful(BiasEncoding):
    def __init__(self, *, slope, **kwargs):
        super().__init__(**kwargs)
        self.slope = slope


@wrong("must return the argument slope from `get_config`")
class Undeclared(ALiBi):
    def __init__(self, *, slope=1.0, **kwargs):
        super().__init__(**kwargs)
        self.slope = slope


@wrong("must keep the argument slope as it was given")
class Stubborn(ALiBi):
    slope = Number(example=2.0)

    def __init__(self, *, slope=1.0, **kwargs):
        super().__init__(**kwargs)
        self.slope = 1.0


@wrong("must give the same with what `prepare` returned")
class Unprepared(ALiBi):
    def attention_bias(self, query, key, *positions, **kwargs):
        bias = super().attention_bias(query, key, *positions, **kwargs)
        return bias / 2 if kwargs.get("prepared") is None else bias


@wrong("must encode earlier tokens whatever tokens follow")
class Centred(ALiBi):
    def bias_at(self, prepared, query, key):
        return prepared - ops.mean(prepared, axis=3, keepdims=True)


@wrong("must treat every query alone")
class Queries(ALiBi):
    def bias_at(self, prepared, query, key):
        return prepared * (1 + ops.cast(ops.shape(query)[1] == 1, "float32"))


@wrong("must treat positions .B, T. as those of each example")
class OneForAll(SinusoidalEncoding):
    def add_to_embeddings(self, embeddings, positions):
        if len(positions.shape) == 2:
            positions = positions[0]
        return super().add_to_embeddings(embeddings, positions)


@wrong("must be exact at positions up to 262144")
class Products(RoPE):
    def prepare(self, query_positions, key_positions, spec):
        small = (
            ops.cast(positions, "float32") / 3
            for positions in (query_positions, key_positions)
        )
        return super().prepare(*small, spec)


@wrong("must tell position 1001 from 1000")
class Coarse(SinusoidalEncoding):
    def add_to_embeddings(self, embeddings, positions):
        halves = ops.cast(ops.cast(positions, "bfloat16"), "float32")
        return super().add_to_embeddings(embeddings, halves)


@wrong("must give tokens at some positions what they get among all")
class Numbered(ALiBi):
    def bias_at(self, prepared, query, key):
        return prepared - ops.arange(ops.shape(key)[1], dtype="float32")


@wrong("reads positions by their rank: True")
class Ranks(ALiBi):
    def __init__(self, *, distances="sampled", **kwargs):
        super().__init__(distances=distances, **kwargs)
        self.reads_ranks = False


@wrong("must return float32 with the policy mixed_bfloat16")
class Half(ALiBi):
    def bias_at(self, prepared, query, key):
        bias = super().bias_at(prepared, query, key)
        return ops.cast(bias, self.compute_dtype)


@wrong("must be as exact in half precision as its inputs")
class Rounded(RoPE):
    def prepare(self, query_positions, key_positions, spec):
        rounded = (
            ops.cast(ops.cast(positions, spec.dtype), "float32")
            for positions in (query_positions, key_positions)
        )
        return super().prepare(*rounded, spec)


@wrong("must read its weights in float32 inside of layers")
class Cast(PowerKERPLE):
    def build(self, query_shape, key_shape=None):
        super().build(query_shape, key_shape)
        self.a._autocast = True


@wrong("must apply its stage when it is called as a layer")
class Lazy(RoPE):
    def call(self, query, key=None, **kwargs):
        return query if key is None else (query, key)


@wrong("must refuse a start index")
class Bold(RandomizedRoPE):
    def call(self, query, key=None, start_index=0, **kwargs):
        return super().call(query, key, **kwargs)


@wrong("must number tokens from a start index on")
class Forever(SinusoidalEncoding):
    def call(self, embeddings, start_index=0, **kwargs):
        return super().call(embeddings, **kwargs)


@wrong("must refuse sequences longer than `max_position`")
class Endless(LearnedEncoding):
    max_position: int = argument(default=1100)

    def check_length(self, tokens, **kwargs):
        pass


@wrong("must not number tokens that are masked")
class Blind(SinusoidalEncoding):
    def call(self, embeddings, mask=None, **kwargs):
        return super().call(embeddings, **kwargs)


@wrong("must tell the shapes of its outputs")
class Shapeless(RoPE):
    def compute_output_shape(self, query_shape, key_shape=None):
        return (query_shape[:2], query_shape)


@wrong("must have finite gradients")
class Steep(T5Bias):
    def attention_bias(self, query, key, *positions, **kwargs):
        bias = super().attention_bias(query, key, *positions, **kwargs)
        return bias + ops.sqrt(0 * ops.abs(bias))


@wrong("does not keep the order")
class Falling(PositionSampler):
    def sample(self, inputs, **kwargs):
        return ops.flip(ops.arange(ops.shape(inputs)[1]))


@wrong("must draw the same again with the same seed")
class Seedless(RandomizedPositions):
    def __init__(self, *, max_position=64, seed=3, **kwargs):
        super().__init__(max_position=max_position, seed=seed, **kwargs)
        self.seed_generator = keras.random.SeedGenerator()


@wrong("must read nothing but the shape of its inputs")
class Reading(PositionSampler):
    def sample(self, inputs, **kwargs):
        return ops.arange(ops.shape(inputs)[1]) + (len(inputs.shape) == 3)


@wrong("must give a padded sequence the positions of the sequence alone")
class Padded(PositionSampler):
    def sample(self, inputs, **kwargs):
        tokens = ops.shape(inputs)[1]
        return ops.arange(tokens, dtype="int32") + tokens


@wrong("must give padding the largest positions")
class Wrapped(PositionSampler):
    def sample(self, inputs, lengths=None, **kwargs):
        indices = ops.arange(ops.shape(inputs)[1], dtype="int32")
        if lengths is None:
            return indices
        return ops.where(indices < ops.expand_dims(lengths, -1), indices, 0)


@wrong("must tell the shape of its positions")
class Untold(OrdinalPositions):
    def compute_output_shape(self, *shapes):
        return shapes[0]


@wrong("must give the same in a graph")
class Eager(PositionSampler):
    def sample(self, inputs, **kwargs):
        return ops.arange(ops.shape(inputs)[1]) + hasattr(inputs, "numpy")


@pytest.mark.parametrize("name", WRONG)
def test_broken_promises_are_named(name):
    cls, promise = WRONG[name]
    layer = cls(slope=1) if name == "Forgetful" else cls()
    with pytest.raises(AssertionError, match=f"^{name} {promise}"):
        check_conformance(layer)


FLAGS = [
    ("LearnedEncoding", "takes_fractions", "is defined at fractions: False"),
    ("FIRE", "takes_negative", "is defined at negative positions: False"),
    ("RoPE", "defined_past_training", "is defined at large positions: True"),
    ("FIRE", "shift_invariant", "depends on differences of positions .*: F"),
    ("SinusoidalEncoding", "uses_token_index", "must not use positions"),
    ("CoPE", "uses_token_index", "must use positions"),
    ("HardALiBi", "masks_keys", "hides keys and must say so"),
    ("AugmentedPositions", "negative", "returns negative positions and must"),
    ("RandomizedPositions", "fractional", "must return finite positions .*32"),
    ("RandomizedPositions", "is_random", "draws positions: True"),
    ("InterpolatedPositions", "stretches", "gives neighbouring tokens other d"),
]
"""Class attributes that are not true if they have another value."""


@pytest.mark.parametrize(("name", "flag", "promise"), FLAGS)
def test_wrong_attributes_are_named(name, flag, promise):
    cls = {**ENCODINGS, **SAMPLERS}[name]
    row = {**encodings.ROWS, **samplers.ROWS}[name]
    mine = type("Mine", (cls,), {flag: not getattr(cls, flag)})
    keras.saving.register_keras_serializable(__name__)(mine)
    with pytest.raises(AssertionError, match=f"^Mine {promise}"):
        check_conformance(mine(**row.arguments))


def test_other_things_are_refused():
    with pytest.raises(ValueError, match="got a Dense"):
        check_conformance(keras.layers.Dense(3))


@pytest.mark.parametrize(
    "method", ["add_to_embeddings", "rotate", "attention_bias"]
)
def test_a_stage_must_be_said(method):
    with pytest.raises(TypeError, match=rf"Mine implements `{method}`"):
        type("Mine", (PositionalEncoding,), {method: lambda *_: np.ones(3)})
