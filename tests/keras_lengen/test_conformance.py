"""Checks of encodings and samplers that users make."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.conformance import check_conformance
from keras_lengen.layers import (
    ALiBi,
    BiasEncoding,
    PositionalEncoding,
    PositionSampler,
    RoPE,
    SinusoidalEncoding,
)
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.products import product

WRONG = {}


def wrong(promise):
    """Registers a class that breaks a promise."""

    def add(cls):
        WRONG[cls.__name__] = cls, promise
        return keras.saving.register_keras_serializable(package="tests")(cls)

    return add


@pytest.mark.parametrize(
    "variant",
    # The default run has one of each stage.
    product(encodings.ROWS, keep=["SinusoidalEncoding", "XPos", "FIRE"]),
)
def test_encodings_keep_the_promises(variant):
    check_conformance(encodings.make(variant))


@pytest.mark.parametrize("variant", samplers.VARIANTS)
def test_samplers_keep_the_promises(variant):
    check_conformance(samplers.make(variant))


@wrong("cannot be made from its configuration")
class Forgetful(BiasEncoding):
    def __init__(self, *, slope, **kwargs):
        super().__init__(**kwargs)
        self.slope = slope


@wrong("must tell position 1000 from 1001 in half precision")
class Rounded(RoPE):
    def prepare(self, query_positions, key_positions, spec):
        rounded = (
            ops.cast(ops.cast(positions, spec.dtype), "float32")
            for positions in (query_positions, key_positions)
        )
        return super().prepare(*rounded, spec)


@wrong("must give the same with what `prepare` returned")
class Unprepared(ALiBi):
    def prepare(self, query_positions, key_positions, spec):
        return 2 * super().prepare(query_positions, key_positions, spec)

    def attention_bias(self, query, key, *positions, **kwargs):
        bias = super().attention_bias(query, key, *positions, **kwargs)
        return bias / 2 if kwargs.get("prepared") is None else bias


@wrong("must return a bias of float32")
class Half(ALiBi):
    def bias_at(self, prepared, query, key):
        return ops.cast(prepared, "float16")


@wrong("must treat positions .B, T. as those of each example")
class OneForAll(SinusoidalEncoding):
    def add_to_embeddings(self, embeddings, positions):
        if len(positions.shape) == 2:
            positions = positions[0]
        return super().add_to_embeddings(embeddings, positions)


@wrong("must treat every query alone")
class Centred(ALiBi):
    def bias_at(self, prepared, query, key):
        return prepared - ops.mean(prepared, axis=2, keepdims=True)


@wrong("is not defined at fractions and must say so")
class Rows(SinusoidalEncoding):
    def add_to_embeddings(self, embeddings, positions):
        if not keras.backend.is_int_dtype(positions.dtype):
            raise ValueError("no row")
        return super().add_to_embeddings(embeddings, positions)


@wrong("is not defined at negative positions and must say so")
class Roots(RoPE):
    def prepare(self, query_positions, key_positions, spec):
        roots = (ops.sqrt(query_positions), ops.sqrt(key_positions))
        return super().prepare(*roots, spec)


@wrong("depends on more than differences of positions and must say so")
class Squares(RoPE):
    def prepare(self, query_positions, key_positions, spec):
        squares = (ops.square(query_positions), ops.square(key_positions))
        return super().prepare(*squares, spec)


@wrong("returns negative positions and must say so")
class Negative(PositionSampler):
    def sample(self, inputs, **kwargs):
        return ops.arange(ops.shape(inputs)[1]) - 1


@wrong("does not keep the order")
class Falling(PositionSampler):
    def sample(self, inputs, **kwargs):
        return ops.flip(ops.arange(ops.shape(inputs)[1]))


@wrong("must give a padded sequence the positions of the sequence alone")
class Padded(PositionSampler):
    def sample(self, inputs, **kwargs):
        tokens = ops.shape(inputs)[1]
        return ops.arange(tokens, dtype="int32") + tokens


@pytest.mark.parametrize("name", WRONG)
def test_broken_promises_are_named(name):
    cls, promise = WRONG[name]
    layer = cls(slope=1) if name == "Forgetful" else cls()
    with pytest.raises(AssertionError, match=f"^{name} {promise}"):
        check_conformance(layer)


def test_other_things_are_refused():
    with pytest.raises(ValueError, match="got a Dense"):
        check_conformance(keras.layers.Dense(3))


@pytest.mark.parametrize(
    "method", ["add_to_embeddings", "rotate", "attention_bias"]
)
def test_a_stage_must_be_said(method):
    with pytest.raises(TypeError, match=rf"Mine implements `{method}`"):
        type("Mine", (PositionalEncoding,), {method: lambda *_: np.ones(3)})
