"""Positions in evaluation, changed after programs were compiled."""

import keras
import numpy as np
import pytest

from keras_lengen.layers import (
    MultiHeadAttention,
    RandomizedRoPE,
    RoPE,
    ShiftedPositions,
)
from keras_lengen.models import set_evaluation
from tests.keras_lengen.models.small import decoder, token_ids

WIDE = {"max_position": 64}


def functional(encoding):
    tokens = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(9, 8)(tokens)
    return keras.Model(
        tokens, MultiHeadAttention(2, 4, encoding=encoding)(x, x)
    )


@pytest.mark.product
@pytest.mark.parametrize(
    "make", [decoder, functional], ids=["decoder", "functional"]
)
def test_compiled_programs_have_the_new_positions(make):
    model = make(RandomizedRoPE(**WIDE))
    model.compile("sgd", "mse")
    ids = token_ids()

    def predict():
        return [model.predict(ids, verbose=0) for _ in range(2)]

    first, second = predict()
    assert not np.array_equal(first, second)
    set_evaluation(model, "even")
    first, second = predict()
    np.testing.assert_array_equal(first, second)
    (layer,) = {
        id(each): each
        for each in model._flatten_layers()
        if isinstance(each, RandomizedRoPE)
    }.values()
    assert layer.evaluation == layer.get_config()["evaluation"] == "even"
    set_evaluation(model, "ordinal")
    assert not np.array_equal(predict()[0], first)


@pytest.mark.product
def test_generation_has_the_new_positions():
    model = decoder(RandomizedRoPE(**WIDE), num_layers=2)
    ids = token_ids()
    model.generate(ids, 2)
    set_evaluation(model, "ordinal")
    plain = decoder(RoPE(), num_layers=2)
    plain.set_weights(model.get_weights())
    np.testing.assert_array_equal(
        model.generate(ids, 2), plain.generate(ids, 2)
    )


def test_an_attribute_cannot_be_assigned():
    encoding = RandomizedRoPE(**WIDE)
    for owner in (encoding, encoding.sampler, ShiftedPositions(max_shift=3)):
        value = "max" if isinstance(owner, ShiftedPositions) else "even"
        with pytest.raises(AttributeError, match=f"evaluation.*{value!r}"):
            owner.evaluation = value


def test_what_samplers_do_not_accept_is_refused():
    both = decoder(
        [RandomizedRoPE(**WIDE), RoPE(sampler=ShiftedPositions(max_shift=3))],
        num_layers=2,
    )
    with pytest.raises(ValueError, match='ShiftedPositions must be "zero"'):
        set_evaluation(both, "even")
    assert both.encoding[0].evaluation == "random"
    set_evaluation(both, "random")
    with pytest.raises(ValueError, match="has none"):
        set_evaluation(decoder(RoPE()), "even")
    with pytest.raises(ValueError, match="model must be a Model"):
        set_evaluation(RandomizedRoPE(**WIDE), "even")
