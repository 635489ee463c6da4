"""`RetrofittedModel`, by the models of KerasHub that it does not change."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    DAPE,
    FIRE,
    AbacusPositions,
    ALiBi,
    InterpolatedPositions,
    LearnedEncoding,
    MultiHeadAttention,
    NoPE,
    OrdinalPositions,
    PoPE,
    RandomizedPositions,
    RandomizedRoPE,
    RoPE,
    SelectiveRoPE,
    SelfExtend,
    SinusoidalEncoding,
    SkippedPositions,
    YaRN,
)
from keras_lengen.retrofit import RetrofittedModel
from tests.keras_lengen.models.decoding import search
from tests.keras_lengen.retrofit.tiny import (
    ALL,
    ROTARY,
    compute,
    make_backbone,
    make_inputs,
    make_task,
    place,
)

keras_hub = pytest.importorskip("keras_hub")
pytestmark = pytest.mark.product


@pytest.mark.parametrize("family", ALL)
def test_ordinal_positions_change_nothing(family):
    backbone = make_backbone(family)
    weights = {id(weight) for weight in backbone.weights}
    inputs = make_inputs(family, real=9)
    before = compute(backbone, inputs)
    model = RetrofittedModel(backbone)
    assert isinstance(model.sampler, OrdinalPositions)
    # KerasHub before 0.31 permutes Gemma's features, which rounds otherwise.
    tolerance = 1e-5 if family == "Gemma" else 0
    after = compute(model, inputs)
    np.testing.assert_allclose(after, before, rtol=0, atol=tolerance)
    # No weights are copied.
    assert {id(weight) for weight in model.weights} == weights


# All keys are near, and the scores are computed by the patch: grouped heads,
# soft caps, windows, scale and mask are those of the model.
NEAR_KEYS = SelfExtend(window=500)


@pytest.mark.parametrize(
    ("family", "encoding"),
    [
        *((family, NEAR_KEYS) for family in ROTARY),
        # It takes base, layout and rotated features from the model.
        *((family, RoPE()) for family in ("Llama", "Gemma", "GPTNeoX")),
    ],
)
def test_an_encoding_like_that_of_the_model_changes_nothing(family, encoding):
    backbone = make_backbone(family)
    inputs = make_inputs(family, real=10)
    before = compute(backbone, inputs)
    model = RetrofittedModel(backbone, encoding=encoding)
    np.testing.assert_allclose(compute(model, inputs), before, atol=5e-4)


@pytest.mark.parametrize("family", ["Llama", "Qwen", "Gemma", "GPT2"])
def test_positions_are_those_of_a_longer_sequence(family, real=9):
    """And all layers have the same ones."""
    # Windows count tokens, and not positions.
    windowed = family in ("Qwen", "Gemma")
    windows = {"sliding_window_size": 64} if windowed else {}
    backbone = make_backbone(family, **windows)
    inputs = make_inputs(family, tokens=12, real=real)
    sampler = RandomizedPositions(max_position=64, resample="example", seed=1)
    model = RetrofittedModel(backbone, sampler=sampler)
    ids, lengths = inputs["token_ids"], np.full(2, real)
    positions = np.asarray(model.positions.sample(ids, lengths=lengths))
    positions = positions[:, :real]
    assert not (positions[0] == positions[1]).all()
    after = compute(model, inputs)[:, :real]
    inputs = {name: values[:, :real] for name, values in inputs.items()}
    given = compute(model, {**inputs, "positions": positions})
    np.testing.assert_allclose(given, after, rtol=1e-4, atol=1e-5)
    before = compute(model.restore(), place(inputs, positions, 64))
    for row, indices in enumerate(positions):
        np.testing.assert_allclose(
            after[row], before[row, indices], rtol=1e-3, atol=1e-4
        )


def test_an_encoding_is_for_the_global_layers_of_gemma3():
    """Five local layers keep their rotation; the sixth layer is global."""
    inputs = make_inputs("Gemma3")
    for layers, changed in ((5, False), (6, True)):
        backbone = make_backbone("Gemma3", num_layers=layers)
        before = compute(backbone, inputs)
        after = compute(RetrofittedModel(backbone, encoding=NoPE()), inputs)
        assert np.array_equal(after, before) != changed


@pytest.mark.parametrize(
    "encoding",
    [
        ALiBi(),
        # Base and layout are those of the model.
        SelfExtend(group_size=3, window=5, max_wavelength=300, layout="halves"),
    ],
)
def test_attention_is_that_of_the_library(encoding):
    backbone = make_backbone("Llama")
    attention = backbone.transformer_layers[0]._self_attention_layer
    hidden = np.random.default_rng(1).normal(size=(1, 11, 32))
    options = {"num_key_value_heads": 2, "use_bias": False}
    alone = type(encoding).from_config(encoding.get_config())
    ours = MultiHeadAttention(4, 8, encoding=alone, **options)
    ours.build(hidden.shape, hidden.shape)
    for weight, theirs in zip(ours.weights, attention.weights, strict=True):
        weight.assign(keras.ops.reshape(theirs, weight.shape))
    expected = ours(hidden, hidden, use_causal_mask=True)
    RetrofittedModel(backbone, encoding=encoding)
    causal = np.tril(np.ones((1, 11, 11), "int32"))
    found = attention(hidden.astype("float32"), attention_mask=causal)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("family", ["Llama", "GPT2"])
def test_restore(family):
    backbone = make_backbone(family)
    inputs = make_inputs(family)
    before, config = compute(backbone, inputs), backbone.get_config()
    variables = [id(variable) for variable in backbone.variables]
    encoding = FIRE() if family in ROTARY else SinusoidalEncoding()
    model = RetrofittedModel(backbone, sampler=RANDOMIZED, encoding=encoding)
    assert not np.allclose(compute(model, inputs), before, atol=1e-3)
    for call, message in (
        (backbone.get_config, "save the RetrofittedModel, or"),
        (lambda: RetrofittedModel(backbone), "is changed already"),
        (lambda: model.quantize("int8"), "quantize the backbone before"),
        (lambda: model(np.ones((1, 3))), "a dict of the backbone's inputs"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert model.restore() is backbone
    np.testing.assert_array_equal(compute(backbone, inputs), before)
    assert backbone.get_config() == config
    assert [id(variable) for variable in backbone.variables] == variables
    with pytest.raises(ValueError, match="make a new RetrofittedModel"):
        model(inputs)
    # And again.
    again = RetrofittedModel(backbone)
    np.testing.assert_array_equal(compute(again, inputs), before)


SAVED = {
    "Llama": {"encoding": RandomizedRoPE(max_position=64, evaluation="even")},
    "GPTNeoX": {
        "sampler": InterpolatedPositions(train_length=4),
        "encoding": DAPE(encoding=FIRE()),
    },
    "GPT2": {"encoding": LearnedEncoding(max_position=100), "table": "tiled"},
}


@pytest.mark.parametrize("family", SAVED)
def test_save_and_load(family, tmp_path, loading):
    model = RetrofittedModel(make_backbone(family), **SAVED[family])
    inputs = make_inputs(family)
    for weight in model.trainable_weights:
        weight.assign(weight + 0.01)
    loading.check(model, tmp_path / "model.keras", inputs, atol=1e-5)
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    # The copy is complete: its backbone is that of the saved model.
    np.testing.assert_array_equal(
        compute(loaded.restore(), inputs), compute(model.restore(), inputs)
    )


@pytest.mark.filterwarnings("ignore:.*quantize:UserWarning")
def test_a_quantized_backbone_is_saved(tmp_path, loading):
    """With its configuration, which KerasHub does not save."""
    backbone = make_backbone("Llama")
    config = keras.quantizers.Int8QuantizationConfig(activation_quantizer=None)
    backbone.quantize(config=config)
    model = RetrofittedModel(backbone, encoding=YaRN(original_length=4))
    loading.check(model, tmp_path / "model.keras", make_inputs("Llama"))


def test_a_loaded_model_is_exported_before_its_first_call(tmp_path):
    model = RetrofittedModel(
        make_backbone("Bert"), encoding=SinusoidalEncoding()
    )
    inputs = make_inputs("Bert")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    loaded.export(tmp_path / "exported", verbose=False)
    served = tf.saved_model.load(tmp_path / "exported")
    found = served.serve(keras.tree.map_structure(tf.constant, inputs))
    for name, expected in model(inputs).items():
        np.testing.assert_allclose(found[name], expected, atol=1e-5)


RANDOMIZED = RandomizedPositions(max_position=64)
WIDER = RandomizedPositions(max_position=96)
STRETCHED = InterpolatedPositions(train_length=5)
GENERATING = [
    ("Llama", YaRN(original_length=4), None),
    ("Llama", SelfExtend(group_size=3, window=4), None),
    ("Llama", PoPE(), None),
    ("Mistral", RandomizedRoPE(max_position=64), None),
    ("Gemma", ALiBi(), None),
    ("Qwen3", None, STRETCHED),
    ("GPTNeoX", None, RANDOMIZED),
    ("GPT2", LearnedEncoding(max_position=96), WIDER),
]


@pytest.mark.parametrize(
    ("family", "encoding", "sampler"),
    GENERATING,
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_cached_steps_compute_what_one_pass_computes(family, encoding, sampler):
    model = RetrofittedModel(
        make_backbone(family), encoding=encoding, sampler=sampler
    )
    task = make_task(family, model)
    inputs = make_inputs(family, tokens=10)
    expected = compute(task, inputs)
    prompt = {key: value.copy() for key, value in inputs.items()}
    prompt["token_ids"][:, 6:] = 0
    ids = keras.ops.convert_to_tensor(prompt["token_ids"])
    _, cache = task._build_cache(ids)
    for index in range(6, 10):
        token = inputs["token_ids"][:, index : index + 1]
        logits, _, cache = task.call_with_cache(
            keras.ops.convert_to_tensor(token), cache, index
        )
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(logits[:, 0]),
            expected[:, index],
            rtol=2e-3,
            atol=2e-3,
        )


@pytest.mark.parametrize("family", ["Llama", "GPT2"])
def test_generation(family):
    """Each token by a whole pass, with the positions of the row."""
    sampler = RandomizedPositions(max_position=64, resample="example", seed=1)
    model = RetrofittedModel(make_backbone(family), sampler=sampler)
    for weight in model.weights:
        weight.assign(3 * weight)
    task = make_task(family, model)
    beam_search = keras_hub.samplers.BeamSampler(num_beams=3)
    task.compile(sampler=beam_search)
    inputs = make_inputs(family, tokens=9, real=5)
    drawn = []
    for _ in range(2):
        found = task.generate(
            {name: value.copy() for name, value in inputs.items()},
            stop_token_ids=None,
        )["token_ids"]
        drawn.append(np.asarray(model.positions.sample(np.zeros((2, 9)))))
        for row, positions in enumerate(drawn[-1]):

            def read(texts, positions=positions):
                ids = np.zeros((len(texts), 9), "int32")
                ids[:, : len(texts[0])] = texts
                given = {
                    "token_ids": ids,
                    "padding_mask": np.ones_like(ids),
                    "positions": np.tile(positions, (len(ids), 1)),
                }
                features = model(given)[:, len(texts[0]) - 1]
                return np.asarray(
                    model.backbone.token_embedding(features, reverse=True)
                )

            prompt = inputs["token_ids"][row, :5]
            expected = search(read, prompt, 4, beams=3)
            assert [*found[row]] == [*prompt, *expected]
    assert not np.array_equal(*drawn)
    assert not np.array_equal(*drawn[0])


TRAINED = {
    "Llama": {"sampler": SkippedPositions(max_position=64)},
    "GPT2": {"encoding": LearnedEncoding(max_position=96)},
}


@pytest.mark.parametrize("family", TRAINED)
def test_fit(family):
    backbone = make_backbone(family)
    own = {id(weight) for weight in backbone.weights}
    model = RetrofittedModel(backbone, **TRAINED[family])
    task = make_task(family, model)
    weights = {id(weight): weight for weight in task.trainable_weights}
    # The parts of the patches are found through the layers of the task.
    assert {id(weight) for weight in model.trainable_weights} == {*weights}
    # An encoding is trained too, if it has weights.
    assert bool(weights.keys() - own) == (family == "GPT2")
    task.compile(optimizer=keras.optimizers.SGD(0.05), jit_compile=False)
    inputs = make_inputs(family)
    before = {name: np.array(weight) for name, weight in weights.items()}
    task.fit(inputs, inputs["token_ids"], shuffle=False, verbose=0)
    changed = {
        name
        for name, weight in weights.items()
        if not np.array_equal(before[name], np.array(weight))
    }
    assert weights.keys() - own <= changed
    assert changed & own


def test_training_steps_draw_anew():
    """And evaluation uses the positions of evaluation."""
    sampler = SkippedPositions(max_position=64, seed=1)
    model = RetrofittedModel(make_backbone("Llama"), sampler=sampler)
    inputs = make_inputs("Llama")
    first, second = (compute(model, inputs, training=True) for _ in range(2))
    assert not np.allclose(first, second, atol=1e-3)
    np.testing.assert_array_equal(
        compute(model, inputs), compute(make_backbone("Llama"), inputs)
    )


def test_lora(tmp_path, loading):
    encoding = YaRN(original_length=8)
    model = RetrofittedModel(make_backbone("Llama"), encoding=encoding)
    inputs = make_inputs("Llama")
    model.backbone.enable_lora(2)
    task = make_task("Llama", model)
    assert 0 < len(task.trainable_weights) < len(task.weights) / 2
    for weight in task.trainable_weights:
        weight.assign(weight + 0.1)
    loading.check(model, tmp_path / "model.keras", inputs, atol=1e-4)


def test_mixed_precision_keeps_positions_apart():
    """bfloat16 has one number for 1000 and 1001."""
    inputs = make_inputs("Llama", tokens=4)
    half, full = (
        RetrofittedModel(make_backbone("Llama", dtype=dtype))
        for dtype in ("mixed_bfloat16", "float32")
    )
    outputs = []
    for last in (1000, 1001):
        given = {**inputs, "positions": np.array([0, 1, 998, last])}
        found, expected = compute(half, given), compute(full, given)
        assert np.abs(found - expected).mean() < 0.1 * np.abs(expected).mean()
        outputs.append(found[:, 3])
    assert not np.array_equal(*outputs)


def interpolate(rows, places):
    """Rows of a table between its rows."""
    columns = [np.interp(places, np.arange(64), column) for column in rows.T]
    return np.stack(columns, axis=-1)


def find_table(**arguments):
    """The first 150 rows that a changed GPT-2 adds."""
    model = RetrofittedModel(make_backbone("GPT2"), **arguments)
    patch = model.backbone.position_embedding
    compute(model, make_inputs("GPT2", tokens=120))
    return np.asarray(patch(np.zeros((1, 150, 32), "float32")))[0]


def test_tables():
    """The three beginnings of a longer table, and points between two rows."""
    embedding = make_backbone("GPT2").position_embedding
    rows = np.asarray(embedding.position_embeddings)
    interpolated, tiled, initialized = (
        find_table(encoding=LearnedEncoding(max_position=150), table=table)
        for table in ("interpolated", "tiled", "initialized")
    )
    expected = interpolate(rows, np.linspace(0, 63, 150))
    np.testing.assert_allclose(interpolated, expected, atol=1e-4)
    expected = np.concatenate([rows, rows, rows[:22]])
    np.testing.assert_allclose(tiled, expected, atol=1e-6)
    np.testing.assert_allclose(initialized[:64], rows, atol=1e-6)
    spread = initialized[64:].std()
    np.testing.assert_allclose(spread, rows.std(), rtol=0.1)
    # The last positions are past the last row, and read it.
    between = find_table(sampler=InterpolatedPositions(train_length=64))
    expected = interpolate(rows, np.arange(150) * 64 / 150)
    np.testing.assert_allclose(between, expected, atol=1e-4)


OWN = RandomizedRoPE(max_position=64)
TABLE = LearnedEncoding(max_position=99)
ABACUS = AbacusPositions(digits=(1, 2), max_shift=4)
WRONG = [
    ("Llama", {"encoding": SinusoidalEncoding()}, "rotates queries and keys"),
    ("GPT2", {"encoding": YaRN(original_length=8)}, "which adds a table"),
    ("Llama", {"encoding": SelectiveRoPE()}, "Backbone does not pass on"),
    ("Llama", {"sampler": ABACUS}, "reads token ids"),
    ("Llama", {"table": "tiled"}, "or leave table out"),
    ("GPT2", {"sampler": WIDER}, "64 rows: give it encoding=LearnedEncoding"),
    ("GPT2", {"table": "zeros"}, "table must be"),
    ("Llama", {"encoding": OWN, "sampler": RANDOMIZED}, "give only one"),
    ("GPT2", {"encoding": TABLE, "sampler": STRETCHED}, "gives fractions"),
]


@pytest.mark.parametrize(("family", "arguments", "message"), WRONG)
def test_what_does_not_go_together(family, arguments, message):
    backbone = make_backbone(family)
    with pytest.raises(ValueError, match=message):
        RetrofittedModel(backbone, **arguments)
    # Nothing has been changed.
    backbone.get_config()


def test_other_models_and_longer_inputs_are_refused():
    with pytest.raises(ValueError, match="patch is known, one of Lla"):
        RetrofittedModel(keras.Sequential())
    with pytest.raises(ValueError, match="below 64, the number of rows"):
        RetrofittedModel(make_backbone("GPT2"))(make_inputs("GPT2", tokens=65))
    backbone = make_backbone(
        "Phi3",
        rope_scaling_type="su",
        rope_scaling_short_factor=[1.0, 1.2, 1.5, 2.0],
        rope_scaling_long_factor=[2.0, 3.0, 4.0, 5.0],
    )
    with pytest.raises(ValueError, match="such as LongRoPE with the model's"):
        RetrofittedModel(backbone)


@pytest.mark.parametrize(
    ("family", "path", "missing"),
    [
        # What another version of KerasHub could lack.
        ("Llama", "transformer_layers", "has no `transformer_layers`"),
        ("GPT2", "position_embedding", "has no `position_embedding`"),
        ("Llama", None, "takes no `attention_mask`"),
    ],
)
def test_other_version_of_keras_hub(family, path, missing, monkeypatch):
    backbone = make_backbone(family)
    if path is None:
        attention = backbone.transformer_layers[1]._self_attention_layer
        method = "_compute_attention"
        monkeypatch.setattr(attention, method, lambda query, key, value: None)
    else:
        monkeypatch.delattr(backbone, path)
    with pytest.raises(RuntimeError, match=missing) as error:
        RetrofittedModel(backbone)
    assert f"keras_hub is {keras_hub.__version__}" in str(error.value)
    # Nothing has been changed.
    backbone.get_config()


def test_compiled_programs_are_made_anew():
    inputs, backbone = make_inputs("Llama"), make_backbone("Llama")
    before = backbone.predict(inputs, verbose=0)
    model = RetrofittedModel(backbone, encoding=NoPE())
    after = backbone.predict(inputs, verbose=0)
    assert not np.allclose(after, before, atol=1e-3)
    again = model.restore().predict(inputs, verbose=0)
    np.testing.assert_allclose(again, before, atol=1e-5)
