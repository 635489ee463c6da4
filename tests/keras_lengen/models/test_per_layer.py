"""Encodings and windows that differ between the layers of a model."""

import keras
import numpy as np
import pytest

from keras_lengen.layers import (
    ALiBi,
    FeedForward,
    RandomizedPositions,
    RandomizedRoPE,
    Recipe,
    RelativeEncoding,
    RoPE,
    T5Bias,
)
from tests.keras_lengen.models import small

IDS = small.token_ids()
WINDOWS = [3, None, 2]
RECIPES = [small.recipe(sliding_window=window) for window in WINDOWS]


def attentions_of(model):
    return [block.attention_layer for block in model.blocks]


def encodings_of(model):
    return [attention.encoding for attention in attentions_of(model)]


@pytest.mark.product
@pytest.mark.parametrize(
    "recipes", [RECIPES, tuple(RECIPES), lambda layer: RECIPES[layer]]
)
def test_each_block_has_its_own_encoding_and_window(recipes):
    given = [RoPE(max_wavelength=100), None, ALiBi()]
    model = small.with_random_weights(
        small.encoder(
            given,
            num_layers=3,
            attention=recipes,
            feedforward=[None, Recipe(FeedForward, gated=True), FeedForward],
        )
    )
    found = encodings_of(model)
    assert [type(each).__name__ for each in found] == ["RoPE", "NoPE", "ALiBi"]
    assert found[0].max_wavelength == 100
    # Copies: models made of one list share nothing.
    assert found[0] is not given[0]
    attentions = attentions_of(model)
    assert [each.sliding_window for each in attentions] == WINDOWS
    assert model.attention == RECIPES
    networks = [block.feedforward_layer for block in model.blocks]
    assert [each.gated for each in networks] == [False, True, False]
    expected = model.embedding(IDS) * 4
    for block in model.blocks:
        expected = block(expected)
    np.testing.assert_allclose(model(IDS), model.head(expected), atol=1e-4)


def test_an_encoding_in_several_entries_is_one():
    shared = T5Bias()
    model = small.encoder([shared, T5Bias(), shared], num_layers=3)
    first, second, third = encodings_of(model)
    assert first is third
    assert first is not second
    # Whose weights are those of a layer.
    own = RelativeEncoding()
    model = small.encoder([own, own], num_layers=2)
    first, second = encodings_of(model)
    assert first.weights[0] is not second.weights[0]


def lists():
    sampler = RandomizedPositions(max_position=64, seed=1)
    near = RoPE(sampler=sampler)
    far = RoPE(max_wavelength=1e6, sampler=sampler)
    bias = T5Bias()
    return {
        "one sampler": [near, None, far, near],
        "two samplers": [near, RandomizedRoPE(max_position=64, seed=2)] * 2,
        "bias": [bias, None, ALiBi(), bias],
    }


@pytest.mark.product
@pytest.mark.parametrize("name", ["one sampler", "two samplers", "bias"])
def test_a_saved_model_shares_as_much(name, tmp_path, loading):
    model = small.with_random_weights(
        small.decoder(lists()[name], num_layers=4)
    )
    batch = small.inputs(model, IDS, positions=np.array([1, 4, 5, 11, 30, 47]))
    loading.check(model, tmp_path / "model.keras", batch)
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for get in (lambda each: each, lambda each: each.sampler):
        ours, theirs = (
            [[get(a) is get(b) for b in each] for a in each]
            for each in (model.list_encodings(), loaded.list_encodings())
        )
        assert ours == theirs
    assert len(loaded.weights) == len(model.weights)


@pytest.fixture
def seen(monkeypatch):
    monkeypatch.setattr(small.Witness, "seen", [])
    return small.Witness.seen


def same(positions):
    """For each layer, the first with the same positions."""
    rows = [each.tolist() for each in positions]
    return [rows.index(row) for row in rows]


@pytest.mark.parametrize(
    ("name", "draw", "expected"),
    [
        ("one sampler", "model", [0, 0, 0, 0]),
        ("two samplers", "model", [0, 1, 0, 1]),
        ("one sampler", "layer", [0, 1, 2, 3]),
        ("two samplers", "layer", [0, 1, 2, 3]),
    ],
)
def test_layers_share_the_draw_of_their_sampler(name, draw, expected, seen):
    model = small.decoder(
        lists()[name],
        num_layers=4,
        attention=small.Witness,
        share_positions=draw,
    )
    model(IDS)
    assert same(seen) == expected


@pytest.mark.parametrize("given", [list, tuple])
def test_positions_are_given_for_each_layer_or_all(given, seen):
    model = small.decoder(
        given(lists()["two samplers"]), num_layers=4, attention=small.Witness
    )
    one, other = np.arange(6), np.arange(6) ** 2
    model({"token_ids": IDS, "positions": one})
    assert same(seen) == [0, 0, 0, 0]
    seen.clear()
    model({"token_ids": IDS, "positions": [one, other, other, one]})
    assert same(seen) == [0, 1, 1, 0]
