"""`Retrofitted`, by the models of KerasHub that it does not change."""

import doctest

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.layers import (
    DAPE,
    FIRE,
    STRING,
    AbacusPositions,
    ALiBi,
    InterpolatedPositions,
    LearnedEncoding,
    Llama3RoPE,
    LongRoPE,
    NoPE,
    NTKRoPE,
    OrdinalPositions,
    PoPE,
    RandomizedPositions,
    RandomizedRoPE,
    RoPE,
    SelectiveRoPE,
    SelfExtend,
    SinusoidalEncoding,
    SkippedPositions,
    XPos,
    YaRN,
)
from keras_lengen.retrofit import FAMILIES, Retrofitted, retrofitted
from tests.keras_lengen.models.decoding import choose_likeliest, search
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
# `.ci/run` installs KerasHub for them.
pytestmark = pytest.mark.product


def draw(model, inputs, training=None):
    """Reads the positions `(B, T)` that the model gives the tokens."""
    lengths = inputs["padding_mask"].sum(axis=-1).astype("int32")
    positions = keras.ops.convert_to_numpy(
        model.positions.sample(
            inputs["token_ids"], lengths=lengths, training=training
        )
    )
    return np.broadcast_to(positions, inputs["token_ids"].shape)


def test_every_family_is_tested():
    names = {f"{family}Backbone" for family in ALL}
    assert names - {"Llama3Backbone"} == set(FAMILIES)


@pytest.mark.parametrize("family", ALL)
def test_ordinal_positions_change_nothing(family):
    backbone = make_backbone(family)
    weights = {id(weight) for weight in backbone.weights}
    inputs = make_inputs(family, real=9)
    before = compute(backbone, inputs)
    model = Retrofitted(backbone)
    assert isinstance(model.sampler, OrdinalPositions)
    np.testing.assert_array_equal(compute(model, inputs), before)
    # No weights are copied.
    assert {id(weight) for weight in model.weights} == weights


# All keys are near, and the scores are computed by the seam: grouped heads,
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
    model = Retrofitted(backbone, encoding=encoding)
    np.testing.assert_allclose(compute(model, inputs), before, atol=5e-4)


@pytest.mark.parametrize(
    "family", ["Llama", "Qwen", "Gemma", "GPTNeoX", "GPT2"]
)
def test_positions_are_those_of_a_longer_sequence(family, real=9):
    """And all layers have the same ones."""
    # Windows count tokens, and not positions.
    windowed = family in ("Qwen", "Gemma")
    windows = {"sliding_window_size": 64} if windowed else {}
    backbone = make_backbone(family, **windows)
    inputs = make_inputs(family, tokens=12, real=real)
    sampler = RandomizedPositions(max_position=64, resample="example", seed=1)
    model = Retrofitted(backbone, sampler=sampler)
    positions = draw(model, inputs)[:, :real]
    assert not (positions[0] == positions[1]).all()
    after = compute(model, inputs)[:, :real]
    inputs = {name: values[:, :real] for name, values in inputs.items()}
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
        after = compute(Retrofitted(backbone, encoding=NoPE()), inputs)
        assert np.array_equal(after, before) != changed


def test_the_rotation_of_llama_3():
    """KerasHub has it itself."""
    theirs = {
        "rope_frequency_adjustment_factor": 8.0,
        "rope_low_freq_factor": 1.0,
        "rope_high_freq_factor": 4.0,
        "rope_pretraining_sequence_length": 16,
    }
    inputs = make_inputs("Llama", tokens=24)
    encoding = Llama3RoPE(scaling_factor=8, original_length=16)
    model = Retrofitted(make_backbone("Llama"), encoding=encoding)
    expected = compute(make_backbone("Llama", **theirs), inputs)
    np.testing.assert_allclose(compute(model, inputs), expected, atol=2e-4)


def test_the_long_rotation_of_phi3():
    """KerasHub has LongRoPE there, which must be given as an encoding."""
    factors = (1.0, 1.2, 1.5, 2.0), (2.0, 3.0, 4.0, 5.0)
    backbone = make_backbone(
        "Phi3",
        rope_scaling_type="su",
        rope_scaling_short_factor=[*factors[0]],
        rope_scaling_long_factor=[*factors[1]],
        pretraining_sequence_length=8,
        max_sequence_length=32,
    )
    with pytest.raises(ValueError, match="such as LongRoPE with the model's"):
        Retrofitted(backbone)
    encoding = LongRoPE(
        original_length=8,
        scaling_factor=4,
        short_factors=factors[0],
        long_factors=factors[1],
    )
    for tokens in (8, 12):
        inputs = make_inputs("Phi3", tokens=tokens)
        before = compute(backbone, inputs)
        model = Retrofitted(backbone, encoding=encoding)
        np.testing.assert_allclose(compute(model, inputs), before, atol=1e-4)
        model.restore()


def rotate(vector, angles):
    """Rotates pairs `(m, m + D / 2)` by angles, one for each pair."""
    first, second = np.split(vector, 2)
    cosines, sines = np.cos(angles), np.sin(angles)
    return np.concatenate(
        [first * cosines - second * sines, second * cosines + first * sines]
    )


# The distance of a query `i` and a key `j`, by the papers.
DISTANCES = {
    "ALiBi": (ALiBi(), lambda i, j: 0),
    "SelfExtend": (
        SelfExtend(group_size=3, window=5),
        lambda i, j: i - j if i - j < 5 else i // 3 - j // 3 + 5 - 5 // 3,
    ),
    "STRING": (
        STRING(original_length=12, shift_fraction=0.5, window=2),
        lambda i, j: i - j if i - j < 6 else i - j - 6 + 2,
    ),
}


@pytest.mark.parametrize("name", DISTANCES)
def test_formula(name):
    """Attention of one layer of Llama, pair by pair."""
    encoding, distance = DISTANCES[name]
    backbone = make_backbone("Llama")
    attention = backbone.transformer_layers[0]._self_attention_layer
    hidden = np.random.default_rng(1).normal(size=(1, 11, 32))
    query, key, value = (
        np.einsum("btm,mhd->bthd", hidden, np.asarray(dense.kernel))[0]
        for dense in (
            attention._query_dense,
            attention._key_dense,
            attention._value_dense,
        )
    )
    key, value = (np.repeat(each, 2, axis=1) for each in (key, value))
    rates = 300 ** (-np.arange(4) / 4)
    slopes = 2.0 ** -np.array([2, 4, 6, 8])
    outputs = np.zeros((11, 4, 8))
    for i in range(11):
        for head in range(4):
            scores = np.array(
                [
                    rotate(query[i, head], distance(i, j) * rates)
                    @ key[j, head]
                    / np.sqrt(8)
                    - (name == "ALiBi") * slopes[head] * (i - j)
                    for j in range(i + 1)
                ]
            )
            weights = np.exp(scores - scores.max())
            outputs[i, head] = weights / weights.sum() @ value[: i + 1, head]
    expected = np.einsum(
        "thd,hdm->tm", outputs, np.asarray(attention._output_dense.kernel)
    )
    Retrofitted(backbone, encoding=encoding)
    causal = np.tril(np.ones((1, 11, 11), "int32"))
    found = attention(hidden.astype("float32"), attention_mask=causal)
    np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("family", ["Llama", "Gemma", "GPT2"])
def test_restore(family):
    backbone = make_backbone(family)
    inputs = make_inputs(family)
    before, config = compute(backbone, inputs), backbone.get_config()
    weights = [id(weight) for weight in backbone.weights]
    variables = len(backbone.variables)
    encoding = FIRE() if family in ROTARY else SinusoidalEncoding()
    model = Retrofitted(backbone, sampler=RANDOMIZED, encoding=encoding)
    assert not np.allclose(compute(model, inputs), before, atol=1e-3)
    for call, message in (
        (backbone.get_config, "save the Retrofitted model"),
        (lambda: Retrofitted(backbone), "is changed already"),
        (lambda: model.quantize("int8"), "quantize the backbone before"),
        (
            lambda: model(np.ones((1, 3), "int32")),
            "a dict of the backbone's inputs",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert model.restore() is backbone
    np.testing.assert_array_equal(compute(backbone, inputs), before)
    assert backbone.get_config() == config
    assert [id(weight) for weight in backbone.weights] == weights
    assert len(backbone.variables) == variables
    with pytest.raises(ValueError, match="make a new Retrofitted"):
        model(inputs)
    # And again.
    again = Retrofitted(backbone)
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
    model = Retrofitted(make_backbone(family), **SAVED[family])
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
    model = Retrofitted(backbone, encoding=YaRN(original_length=4))
    loading.check(model, tmp_path / "model.keras", make_inputs("Llama"))


def test_a_loaded_model_is_exported_before_its_first_call(tmp_path):
    model = Retrofitted(make_backbone("Bert"), encoding=SinusoidalEncoding())
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
    ("Llama", NTKRoPE(original_length=4), None),
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
    model = Retrofitted(
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
            logits[:, 0], expected[:, index], rtol=2e-3, atol=2e-3
        )


@pytest.mark.parametrize(("family", "beams"), [("Llama", 1), ("GPT2", 3)])
def test_generation(family, beams):
    """Each token by a whole pass, with the positions of the row."""
    sampler = RandomizedPositions(max_position=64, resample="example", seed=1)
    model = Retrofitted(make_backbone(family), sampler=sampler)
    for weight in model.weights:
        weight.assign(3 * weight)
    task = make_task(family, model)
    if beams == 1:
        task.compile(sampler="greedy")
    else:
        search_beams = keras_hub.samplers.BeamSampler(num_beams=beams)
        task.compile(sampler=search_beams, jit_compile=False)
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
            expected = (
                choose_likeliest(read, prompt, 4)[0]
                if beams == 1
                else search(read, prompt, 4, beams)
            )
            assert [*found[row]] == [*prompt, *expected]
    assert not np.array_equal(*drawn)
    assert not np.array_equal(*drawn[0])


TRAINED = {
    "Llama": {
        "sampler": SkippedPositions(max_position=64),
        "encoding": YaRN(original_length=8, scaling_factor=4),
    },
    "GPT2": {"encoding": LearnedEncoding(max_position=96)},
}


@pytest.mark.parametrize("family", TRAINED)
def test_fit(family):
    backbone = make_backbone(family)
    own = {id(weight) for weight in backbone.weights}
    model = Retrofitted(backbone, **TRAINED[family])
    task = make_task(family, model)
    # The parts of the seams are found through the layers of the task.
    assert {id(weight) for weight in model.trainable_weights} == {
        id(weight) for weight in task.trainable_weights
    }
    task.compile(optimizer=keras.optimizers.SGD(0.05), jit_compile=False)
    inputs = make_inputs(family, batch=4)
    before = [np.array(weight) for weight in task.trainable_weights]
    first = draw(model, inputs, training=True)
    targets = inputs["token_ids"]
    history = task.fit(
        inputs, targets, batch_size=2, epochs=2, shuffle=False, verbose=0
    ).history["loss"]
    assert np.isfinite(history).all()
    changed = {
        id(weight): weight.path
        for old, weight in zip(before, task.trainable_weights, strict=True)
        if not np.array_equal(old, np.array(weight))
    }
    for part in ("token_embedding", "feedforward_output_dense"):
        assert any(part in path for path in changed.values())
    # So do those of the encoding, if it has any.
    encoding = {id(weight) for weight in model.trainable_weights} - own
    assert bool(encoding) == (family != "Llama")
    assert not encoding or encoding & {*changed}
    if family == "Llama":  # Its sampler draws.
        assert (draw(model, inputs, training=True) != first).any()


def test_training_steps_draw_anew():
    """And evaluation uses the positions of evaluation."""
    sampler = SkippedPositions(max_position=64, seed=1)
    model = Retrofitted(make_backbone("Llama"), sampler=sampler)
    inputs = make_inputs("Llama")
    first, second = (compute(model, inputs, training=True) for _ in range(2))
    assert not np.allclose(first, second, atol=1e-3)
    np.testing.assert_array_equal(
        compute(model, inputs), compute(make_backbone("Llama"), inputs)
    )


def test_given_positions():
    backbone = make_backbone("Llama")
    inputs = make_inputs("Llama", tokens=6)
    model = Retrofitted(backbone)
    positions = np.array([[0, 1, 2, 40, 41, 42]] * 2)
    after = compute(model, {**inputs, "positions": positions})
    before = compute(model.restore(), place(inputs, positions, 64))
    np.testing.assert_allclose(
        after, before[:, positions[0]], rtol=1e-3, atol=1e-4
    )


def test_lora(tmp_path, loading):
    model = Retrofitted(
        make_backbone("Llama"), encoding=YaRN(original_length=8)
    )
    inputs = make_inputs("Llama")
    before = compute(model, inputs)
    model.backbone.enable_lora(2)
    np.testing.assert_array_equal(compute(model, inputs), before)
    task = make_task("Llama", model)
    task.compile(optimizer=keras.optimizers.SGD(1.0), jit_compile=False)
    assert 0 < len(task.trainable_weights) < len(task.weights) / 2
    task.fit(inputs, inputs["token_ids"], shuffle=False, verbose=0)
    trained = compute(model, inputs)
    assert not np.allclose(trained, before, atol=1e-4)
    loading.check(model, tmp_path / "model.keras", inputs, atol=1e-4)


@pytest.mark.parametrize("family", ["Llama", "GPT2"])
def test_mixed_precision_keeps_positions_apart(family):
    """bfloat16 has one number for 1000 and 1001."""
    options = {"max_sequence_length": 2048} if family == "GPT2" else {}
    inputs = make_inputs(family, tokens=4)
    half, full = (
        Retrofitted(make_backbone(family, dtype=dtype, **options))
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


def test_tables():
    """The three beginnings of a longer table, and points between two rows."""
    rows = np.asarray(
        make_backbone("GPT2").position_embedding.position_embeddings
    )

    def find_table(**arguments):
        model = Retrofitted(make_backbone("GPT2"), **arguments)
        inputs = make_inputs("GPT2", tokens=120)
        assert compute(model, inputs).shape[1] == 120
        seam = model.backbone.position_embedding
        return np.asarray(seam(np.zeros((1, 150, 32), "float32")))[0]

    found = {
        table: find_table(
            encoding=LearnedEncoding(max_position=150), table=table
        )
        for table in ("interpolated", "tiled", "initialized")
    }
    expected = interpolate(rows, np.linspace(0, 63, 150))
    np.testing.assert_allclose(found["interpolated"], expected, atol=1e-4)
    expected = np.concatenate([rows, rows, rows[:22]])
    np.testing.assert_allclose(found["tiled"], expected, atol=1e-6)
    np.testing.assert_allclose(found["initialized"][:64], rows, atol=1e-6)
    spread = found["initialized"][64:].std()
    np.testing.assert_allclose(spread, rows.std(), rtol=0.1)
    # The last positions are past the last row, and read it.
    between = find_table(sampler=InterpolatedPositions(train_length=64))
    expected = interpolate(rows, np.arange(150) * 64 / 150)
    np.testing.assert_allclose(between, expected, atol=1e-4)


UNORDERED = RandomizedPositions(max_position=64, ordered=False)
ABACUS = AbacusPositions(digits=(1, 2), max_shift=4)
WRONG = [
    ("Llama", {"encoding": SinusoidalEncoding()}, "rotates queries and keys"),
    ("GPT2", {"encoding": YaRN(original_length=8)}, "which adds a table"),
    ("Llama", {"encoding": SelectiveRoPE()}, "Backbone does not pass on"),
    ("Llama", {"sampler": ABACUS}, "reads token ids"),
    ("Llama", {"encoding": YaRN}, "the class YaRN: call it"),
    ("Llama", {"table": "tiled"}, "or leave table out"),
    ("GPT2", {"sampler": WIDER}, "64 rows: give it encoding=LearnedEncoding"),
    ("GPT2", {"table": "zeros"}, "table must be"),
    (
        "Llama",
        {"encoding": RandomizedRoPE(max_position=64), "sampler": RANDOMIZED},
        "give only one",
    ),
    (
        "Llama",
        {"encoding": XPos(), "sampler": UNORDERED},
        "may give earlier tokens larger positions",
    ),
    (
        "GPT2",
        {"encoding": LearnedEncoding(max_position=99), "sampler": STRETCHED},
        "gives fractions",
    ),
]


@pytest.mark.parametrize(("family", "arguments", "message"), WRONG)
def test_what_does_not_go_together(family, arguments, message):
    backbone = make_backbone(family)
    with pytest.raises(ValueError, match=message):
        Retrofitted(backbone, **arguments)
    # Nothing has been changed.
    backbone.get_config()


def test_other_models_and_longer_inputs_are_refused():
    with pytest.raises(ValueError, match="seam is known, one of Lla"):
        Retrofitted(keras.Sequential())
    with pytest.raises(ValueError, match="below 64, the number of rows"):
        Retrofitted(make_backbone("GPT2"))(make_inputs("GPT2", tokens=65))


VERSIONS = {
    # What another version of KerasHub could lack.
    "layers": ("Llama", "transformer_layers", "has no `transformer_layers`"),
    "table": ("GPT2", "position_embedding", "has no `position_embedding`"),
    "argument": ("Llama", None, "takes no `attention_mask`"),
}


@pytest.mark.parametrize("name", VERSIONS)
def test_other_version_of_keras_hub(name, monkeypatch):
    family, path, missing = VERSIONS[name]
    backbone, inputs = make_backbone(family), make_inputs(family)
    before = compute(backbone, inputs)
    with monkeypatch.context() as patch:
        if path is None:
            patch.setattr(
                backbone.transformer_layers[1]._self_attention_layer,
                "_compute_attention",
                lambda query, key, value, mask: None,
            )
        else:
            patch.delattr(backbone, path)
        with pytest.raises(RuntimeError, match=missing) as error:
            Retrofitted(backbone)
    assert f"keras_hub is {keras_hub.__version__}" in str(error.value)
    assert "install one of these" in str(error.value)
    # Nothing has been changed.
    np.testing.assert_array_equal(compute(backbone, inputs), before)


def test_compiled_programs_are_made_anew():
    backbone = make_backbone("Llama")
    inputs = make_inputs("Llama")
    before = backbone.predict(inputs, verbose=0)
    model = Retrofitted(backbone, encoding=NoPE())
    after = backbone.predict(inputs, verbose=0)
    assert not np.allclose(after, before, atol=1e-3)
    model.restore()
    np.testing.assert_allclose(
        backbone.predict(inputs, verbose=0), before, atol=1e-5
    )


def test_example_of_the_docstring():
    """Not a doctest, because KerasHub is an extra."""
    source = (Retrofitted.__doc__ or "").replace("# doctest: +SKIP", "")
    example = doctest.DocTestParser().get_doctest(
        source, {}, "Retrofitted", retrofitted.__file__, 0
    )
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    runner.run(example)
    assert runner.tries > 5
    assert runner.failures == 0
