"""`convert`, by the models of Keras that it copies."""

import inspect

import keras
import numpy as np
import pytest
from keras import layers, ops

from keras_lengen.layers import (
    ALiBi,
    MultiHeadAttention,
    RandomizedRoPE,
    RelativeEncoding,
    SinusoidalEncoding,
    T5Bias,
)
from keras_lengen.retrofit import convert
from tests.refusals import refuses

RANDOM = np.random.default_rng(4)
IDS = RANDOM.integers(1, 20, (3, 9))


class Block(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.attention = layers.MultiHeadAttention(2, 4)

    def call(self, x):
        return self.attention(x, x)


class Special(layers.MultiHeadAttention):
    pass


class Own(keras.Model):
    pass


def attend(x, layer=None, value=None, **options):
    layer = layer or layers.MultiHeadAttention(2, 4)
    return layer(x, x if value is None else value, **options)


def make(function, *, cls=keras.Model, shape=(6, 8)):
    x = keras.Input(shape)
    return cls(x, function(x))


def make_model():
    """A model with all that `convert` must keep."""
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    twice = layers.MultiHeadAttention(2, 8, dropout=0.1, name="twice")
    x = layers.Embedding(20, 16)(source)
    for _ in range(2):
        x = x + attend(x, twice, use_causal_mask=True)
    grouped = layers.GroupQueryAttention(4, 4, 2, name="grouped")
    nested = make(lambda x: attend(x, grouped), shape=(None, 16))
    twofold = layers.Lambda(lambda x: 2 * x)
    x = keras.Sequential([nested, twofold], name="sequential")(x)
    y = layers.Embedding(20, 16, mask_zero=True)(target)
    # Keras 3.13 has no windows.
    known = inspect.signature(layers.MultiHeadAttention).parameters
    options = {"sliding_window": 3} if "sliding_window" in known else {}
    window = layers.MultiHeadAttention(2, 8, name="window", **options)
    y = layers.BatchNormalization()(layers.Add()([y, attend(y, window)]))
    cross = layers.MultiHeadAttention(2, 8, name="cross")
    y, scores = cross(y, x, return_attention_scores=True)
    model = keras.Model([source, target], [layers.Dense(5)(y), scores])
    for weight in model.weights:
        lowest = -0.4 if len(weight.shape) > 1 else 0.2
        weight.assign(RANDOM.uniform(lowest, 0.4, weight.shape))
    model.get_layer("window").trainable = False
    model.compile("sgd")
    return model


def list_layers(model):
    """Layers of a model and of the models in it, by name."""
    found = {}
    for layer in model.layers:
        found[layer.name] = layer
        if isinstance(layer, keras.Model):
            found |= list_layers(layer)
    return found


def compute(model):
    """Outputs and attention weights of real tokens."""
    targets = IDS[:, :6] * (np.arange(6) < np.array([[6], [4], [2]]))
    outputs, scores = model([ops.convert_to_tensor(x) for x in (IDS, targets)])
    scores = np.moveaxis(ops.convert_to_numpy(scores), 1, 2)
    return [x[targets > 0] for x in (ops.convert_to_numpy(outputs), scores)]


def assert_close(found, expected):
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-5)


def test_without_an_encoding_nothing_changes():
    model = make_model()
    before, values = compute(model), model.get_weights()
    converted = convert(model)
    assert_close(compute(converted), before)
    kept, copied = map(list_layers, (model, converted))
    assert kept.keys() == copied.keys()
    for name in ("twice", "grouped", "window", "cross"):
        assert type(copied[name]) is MultiHeadAttention
    assert converted.count_params() == model.count_params()
    counts = [len(m.trainable_weights) for m in (model, converted)]
    assert counts[0] == counts[1] < len(model.weights) - 8
    assert converted.compiled
    # The copy has weights of its own.
    for weight in converted.weights:
        weight.assign(ops.zeros(weight.shape))
    assert_close(model.get_weights(), values)


@pytest.mark.parametrize(
    ("encoding", "num_encodings"),
    [
        (T5Bias(), 2),
        (RelativeEncoding(), 3),
        (RandomizedRoPE(max_position=64), 2),
    ],
)
def test_self_attention_gets_copies_of_the_encoding(
    encoding, num_encodings, tmp_path
):
    model = make_model()
    converted = convert(model, encoding=encoding)
    used = [
        each.encoding
        for each in converted._flatten_layers()
        if isinstance(each, MultiHeadAttention) and each.name != "cross"
    ]
    assert {type(each) for each in used} == {type(encoding)}
    assert len({*map(id, used)} - {id(encoding)}) == num_encodings
    cross = converted.get_layer("cross")
    assert cross.encoding.stage is None
    path = tmp_path / "model.keras"
    converted.save(path)
    # There is a lambda function in it.
    loaded = keras.models.load_model(path, safe_mode=False)
    assert_close(compute(loaded), compute(converted))
    assert len(loaded.weights) == len(converted.weights)
    assert not np.allclose(compute(converted)[0], compute(model)[0], atol=1e-3)


def attend_both(x):
    layer = layers.MultiHeadAttention(2, 4)
    return attend(attend(x, layer), layer, value=x)


def attend_back(x):
    return attend(x[:, :3], value=x, use_causal_mask=True)


@refuses(
    (lambda: 3, None, "must be a keras.Model; got 3"),
    (lambda: keras.Sequential([Block()]), None, "call it once"),
    (lambda: make(layers.Dense(2)), None, "only Dense, Functional, Input"),
    (lambda: make(Block(name="b")), None, "'b' cannot be.*code of this cl"),
    (lambda: make(lambda x: attend(x, Special(2, 4))), None, "ass Special"),
    (lambda: make(attend, cls=Own), None, "class Own.*keras.Model\\("),
    (lambda: make(attend_both), ALiBi(), "use two layers"),
    (lambda: make(attend_back), None, "from 3 to 6 tokens"),
    (lambda: make(attend), SinusoidalEncoding(), "added to the embeddings"),
    (lambda: make(attend), "RoPE", "encoding must be a PositionalEncoding"),
)
def test_what_cannot_be_converted(make_source, encoding):
    convert(make_source(), encoding=encoding)


def test_models_of_keras_hub_are_retrofitted():
    pytest.importorskip("keras_hub")
    from tests.keras_lengen.retrofit.tiny import make_backbone

    with pytest.raises(ValueError, match=r"retrofit\.RetrofittedModel"):
        convert(make_backbone("GPT2"))
