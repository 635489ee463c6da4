"""Encodings and windows that differ between the layers of a model."""

import functools

import keras
import numpy as np
import pytest

from keras_lengen.layers import (
    ALiBi,
    AxialEncoding,
    GridPositions,
    NTKRoPE,
    RandomizedPositions,
    RandomizedRoPE,
    RelativeEncoding,
    RoPE,
    SinusoidalEncoding,
    T5Bias,
    XPos,
)
from keras_lengen.models import LoopedDecoder, TransformerDecoder
from tests.keras_lengen.layers.arguments import assert_config_round_trip
from tests.keras_lengen.models.small import (
    Witness,
    assert_chunks_change_nothing,
    assert_generation_is_the_full_pass,
    decoder,
    encoder,
    encoder_decoder,
    inputs,
    token_ids,
    with_random_weights,
)

IDS = token_ids()


def encodings_of(model):
    return [block.attention_layer.encoding for block in model.blocks]


def test_each_block_has_its_own_encoding():
    given = [RoPE(max_wavelength=100), None, ALiBi()]
    model = encoder(given, num_layers=3, embedding_scale=48.0)
    found = encodings_of(model)
    assert [type(each).__name__ for each in found] == ["RoPE", "NoPE", "ALiBi"]
    assert found[0].max_wavelength == 100
    # Copies: models made of one list share nothing.
    assert found[0] is not given[0]
    expected = model.embedding(IDS) * 48.0
    for block in model.blocks:
        expected = block(expected)
    np.testing.assert_allclose(model(IDS), model.head(expected), atol=1e-5)


def test_a_function_gives_the_encoding_of_a_layer():
    near, far = RoPE(), RoPE(max_wavelength=1e6)
    model = encoder(
        lambda n: far if n % 2 else near,
        num_layers=4,
        sliding_window=functools.partial(pow, 3),
    )
    assert model.sliding_window == [1, 3, 9, 27]
    assert isinstance(model.encoding, list)
    waves = [each.max_wavelength for each in encodings_of(model)]
    assert waves == [10_000, 1_000_000] * 2
    first, second, *others = encodings_of(model)
    assert others == [first, second]


def test_an_encoding_is_no_function_of_the_layer():
    model = encoder(RoPE(), num_layers=2)
    assert isinstance(model.encoding, RoPE)


def test_what_layers_have_in_common_is_computed_once(monkeypatch):
    prepared = []
    prepare = RoPE.prepare

    def count(self, *args):
        prepared.append(self)
        return prepare(self, *args)

    monkeypatch.setattr(RoPE, "prepare", count)
    near, far = RoPE(), RoPE(max_wavelength=1e6)
    model = decoder([near, far, None, near, far], num_layers=5)
    prepared.clear()
    model(IDS)
    assert [each.max_wavelength for each in prepared] == [10_000, 1_000_000]


def test_an_encoding_in_several_entries_is_one():
    shared = T5Bias()
    model = encoder([shared, T5Bias(), shared], num_layers=3)
    first, second, third = encodings_of(model)
    assert first is third
    assert first is not second
    # Whose weights are those of a layer.
    own = RelativeEncoding()
    model = encoder([own, own], num_layers=2)
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
        "own weights": [RelativeEncoding()] * 2 + [None, RoPE()],
    }


@pytest.mark.product
@pytest.mark.parametrize("name", lists())
def test_a_saved_model_is_the_same(name, tmp_path, loading):
    model = with_random_weights(decoder(lists()[name], num_layers=4))
    assert_config_round_trip(model)
    positions = np.array([1, 4, 5, 11, 30, 47])
    batch = inputs(model, IDS, positions=positions)
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
    monkeypatch.setattr(Witness, "seen", [])
    return Witness.seen


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
    model = decoder(lists()[name], num_layers=4, attention=Witness, draw=draw)
    model(IDS)
    assert same(seen) == expected


@pytest.mark.parametrize("given", [list, tuple])
def test_positions_are_given_for_each_layer_or_all(given, seen):
    model = decoder(
        given(lists()["two samplers"]), num_layers=4, attention=Witness
    )
    one, other = np.arange(6), np.arange(6) ** 2
    model({"token_ids": IDS, "positions": one})
    assert same(seen) == [0, 0, 0, 0]
    seen.clear()
    model({"token_ids": IDS, "positions": [one, other, other, one]})
    assert same(seen) == [0, 1, 1, 0]


def deterministic():
    """Lists whose positions do not depend on a draw."""
    grid = GridPositions(width=3)
    return {
        "rotation, none and bias": [RoPE(), None, ALiBi()],
        "grid": [
            AxialEncoding(row=RoPE(), column=RoPE(), sampler=grid),
            RoPE(),
            None,
        ],
    }


@pytest.mark.product
@pytest.mark.parametrize("name", deterministic())
@pytest.mark.parametrize(
    "changes", [{}, {"chunk_size": 2}, {"normalization": "pre"}], ids=str
)
def test_generation_is_the_full_pass(name, changes):
    model = with_random_weights(
        decoder(
            deterministic()[name], num_layers=3, output_size=None, **changes
        )
    )
    assert_generation_is_the_full_pass(model, IDS)
    assert_generation_is_the_full_pass(model, IDS, np.array([6, 3]))


@pytest.mark.product
def test_a_length_reaches_the_layers_that_use_it():
    given = [NTKRoPE(scaling_factor=2.0, original_length=4), None, XPos()]
    model = with_random_weights(decoder(given, num_layers=3, output_size=None))
    batch = {"token_ids": IDS, "reference_length": 40}
    tokens, logits = model.generate(batch, 3, return_logits=True)
    whole = np.concatenate([IDS, tokens], axis=1)
    expected = model({**batch, "token_ids": whole})
    np.testing.assert_allclose(expected[:, 5:8], logits, atol=1e-4)
    other = model({**batch, "token_ids": whole, "reference_length": 400})
    assert not np.allclose(other[:, 5:8], logits, atol=1e-3)


def test_chunks_change_nothing():
    assert_chunks_change_nothing(
        decoder([RoPE(), None, ALiBi()], num_layers=3), IDS
    )


@pytest.mark.product
def test_a_looped_decoder_repeats_its_layers():
    model = with_random_weights(
        LoopedDecoder(
            vocabulary_size=7,
            num_layers=2,
            num_heads=2,
            model_dim=16,
            loops=2,
            encoding=[RoPE(), None],
        )
    )
    assert_generation_is_the_full_pass(model, IDS)


def test_both_sequences_have_encodings_by_layer():
    model = encoder_decoder(
        [RoPE(), None], num_layers=2, output_size=None, cross_encoding=ALiBi()
    )
    assert_config_round_trip(model)
    for part in (model.encoder, model.decoder):
        names = [type(each).__name__ for each in encodings_of(part)]
        assert names == ["RoPE", "NoPE"]


def test_half_precision_tells_1000_from_1001():
    model = encoder(
        [RoPE(), None, ALiBi()],
        num_layers=3,
        dtype="mixed_bfloat16",
        embedding_scale=48.0,
    )
    near = np.array([990, 992, 994, 996, 999, 1000])
    first, second = (
        np.asarray(model({"token_ids": IDS, "positions": positions}))
        for positions in (near, near + (near == 1000))
    )
    assert not np.array_equal(first, second)


@pytest.mark.product
def test_a_training_step_under_xla_moves_every_weight():
    model = decoder(
        lists()["bias"], num_layers=4, dropout=0, dtype="mixed_bfloat16"
    )
    before = model.get_weights()
    model.compile(
        optimizer=keras.optimizers.SGD(1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=True,
    )
    ids = token_ids(40)
    model.fit(ids, ids % 3, epochs=1, verbose=0)
    for weight, old in zip(model.weights, before, strict=True):
        if "bias_table" not in weight.path:
            assert not np.array_equal(weight, old), weight.path


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: decoder([RoPE()], num_layers=2),
            "encoding must have one entry for each of the 2 layers; got 1",
        ),
        (
            lambda: decoder([]),
            r"encoding must be .* or a list with",
        ),
        (
            lambda: decoder([RoPE]),
            r"encoding must be .* class RoPE: call it",
        ),
        (lambda: decoder([3]), r"encoding must be .* or None.*; got \[3\]"),
        (lambda: decoder(lambda n: n), r"encoding must be .*; got \[0\]"),
        (
            lambda: decoder([None, SinusoidalEncoding()], num_layers=2),
            "encoding of layer 1 is a SinusoidalEncoding, which is added to",
        ),
        (
            lambda: encoder([None, XPos()], num_layers=2),
            "encoding=XPos is for causal attention",
        ),
        (
            lambda: encoder_decoder(
                lambda n: RoPE(), num_layers=2, num_decoder_layers=1
            ),
            "as many layers in the decoder as in the encoder; got 1 and 2",
        ),
    ],
)
def test_wrong_values_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_model_takes_one_list_after_the_other():
    """A list of configurations, as JSON has it, is as good as encodings."""
    config = decoder([RoPE(), None], num_layers=2).get_config()
    assert isinstance(config["encoding"], list)
    assert isinstance(TransformerDecoder.from_config(config).encoding[0], RoPE)


WINDOWS = [3, None, 2]


def windows_of(model):
    return [block.attention_layer.sliding_window for block in model.blocks]


@pytest.mark.parametrize(
    "given", [WINDOWS, tuple(WINDOWS), lambda layer: WINDOWS[layer]]
)
def test_each_block_has_its_own_window(given, tmp_path, loading):
    model = with_random_weights(
        decoder(RoPE(), num_layers=3, sliding_window=given, sink_tokens=1)
    )
    assert windows_of(model) == model.sliding_window == WINDOWS
    sinks = [block.attention_layer.sink_tokens for block in model.blocks]
    assert sinks == [1, 0, 1]
    x = model.embedding(IDS) * model.model_dim**0.5
    for block in model.blocks:
        x = block(x)
    np.testing.assert_allclose(model(IDS), model.head(x), atol=1e-5)
    assert_config_round_trip(model)
    loading.check(model, tmp_path / "model.keras", IDS)


def test_generation_with_windows_of_some_layers_is_the_full_pass():
    model = with_random_weights(
        decoder(
            [RoPE(), None, RoPE()],
            num_layers=3,
            sliding_window=WINDOWS,
            sink_tokens=1,
            output_size=None,
        )
    )
    assert_generation_is_the_full_pass(model, IDS, np.array([6, 3]))


def test_encoder_and_decoder_have_the_windows():
    model = encoder_decoder(num_layers=3, sliding_window=WINDOWS)
    assert windows_of(model.encoder) == windows_of(model.decoder) == WINDOWS
    assert_config_round_trip(model)
    with pytest.raises(ValueError, match=r"sliding_window .* as many layers"):
        encoder_decoder(
            num_layers=3,
            num_decoder_layers=2,
            sliding_window=lambda layer: WINDOWS[layer],
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sliding_window": [2, 3]}, "one entry for each of the 3 layers; got"),
        ({"sliding_window": [2, 0, None]}, "sliding_window must be .* got"),
        ({"sliding_window": [None] * 3, "sink_tokens": 1}, "sink_tokens=1"),
        ({"sink_tokens": 1}, "sink_tokens=1 .* set sliding_window"),
    ],
    ids=str,
)
def test_wrong_windows_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        decoder(num_layers=3, **arguments)
