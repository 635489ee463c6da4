"""Every encoding and every sampler in a whole model."""

import keras
import numpy as np
import pytest

from keras_lengen.layers import MultiHeadAttention
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models.small import (
    OUTPUT_SIZE,
    encoder,
    token_ids,
)

SPREAD = np.array([1, 4, 5, 11, 30, 47], "int32")

every_variant = pytest.mark.parametrize("variant", encodings.BIDIRECTIONAL)
every_name = pytest.mark.parametrize(
    "name", [name for name in encodings.ROWS if name in encodings.BIDIRECTIONAL]
)


def saved_and_loaded(model, tmp_path):
    path = tmp_path / "model.keras"
    model.save(path)
    return keras.saving.load_model(path)


@every_variant
def test_a_saved_encoder_is_the_same(variant, tmp_path):
    model = encoder(encodings.make(variant), num_layers=2)
    loaded = saved_and_loaded(model, tmp_path)
    assert loaded.get_config() == model.get_config()
    inputs = {"token_ids": token_ids(), "positions": SPREAD}
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


@every_variant
def test_a_saved_functional_model_is_the_same(variant, tmp_path):
    """The encoding by itself, and in attention where it belongs there."""
    encoding = encodings.make(variant)
    arrays = encodings.random_inputs(encoding.stage)
    symbols = [keras.Input((None, *x.shape[2:])) for x in arrays]
    positions = keras.Input((None,), dtype="int32")
    outputs = [encoding(*symbols, positions=positions)]
    if encoding.stage != "embeddings":
        attention = MultiHeadAttention(2, 4, encoding=encodings.make(variant))
        flat = keras.layers.Reshape((-1, encodings.MODEL_DIM))(symbols[0])
        outputs.append(attention(flat, flat, positions=positions))
    model = keras.Model([*symbols, positions], keras.tree.flatten(outputs))
    loaded = saved_and_loaded(model, tmp_path)
    inputs = [*arrays, np.tile(SPREAD, (encodings.BATCH, 1))]
    for output, same in zip(model(inputs), loaded(inputs), strict=True):
        np.testing.assert_array_equal(same, output)


@every_name
def test_a_compiled_training_step_moves_every_weight(name):
    model = encoder(
        encodings.make(name),
        # What these add to the time of compilation is the same for all.
        dropout=0,
        normalization=None,
        dtype="mixed_bfloat16",
    )
    before = model.get_weights()
    model.compile(
        optimizer=keras.optimizers.SGD(1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=True,
    )
    inputs = token_ids(batch_size=4)
    history = model.fit(inputs, inputs % OUTPUT_SIZE, epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    for weight, old in zip(model.weights, before, strict=True):
        assert np.isfinite(weight).all()
        if weight.name in encodings.ROWS[name].idle_weights:
            np.testing.assert_allclose(weight, old, atol=1e-5)
        else:
            assert not np.array_equal(weight, old), weight.path


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name, row in encodings.ROWS.items()
        if name in encodings.BIDIRECTIONAL
        for dtype in row.position_dtypes
    ],
)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_tells_1000_from_1001(name, policy, dtype):
    model = encoder(encodings.make(name), dtype=policy)
    near = np.array([990, 992, 994, 996, 998, 1000])
    logits = []
    for positions in (near, near + (near == 1000)):
        positions = keras.ops.convert_to_tensor(positions.astype(dtype))
        inputs = {"token_ids": token_ids(), "positions": positions}
        logits.append(np.asarray(model(inputs)))
        assert logits[-1].dtype == "float32"
        assert np.isfinite(logits[-1]).all()
    differ = not np.array_equal(*logits)
    assert differ == encodings.ROWS[name].uses_positions
    assert {weight.dtype for weight in model.weights} == {"float32"}


@every_variant
def test_half_precision_is_near_float32_at_large_positions(variant):
    exact = encoder(encodings.make(variant))
    # Embeddings large enough for attention to tell tokens apart.
    exact.embedding.embeddings.assign(12 * exact.embedding.embeddings)
    model = encoder(encodings.make(variant), dtype="mixed_bfloat16")
    model.set_weights(exact.get_weights())
    positions = encodings.row_of(variant).top - np.array([9, 7, 5, 3, 2, 0])
    inputs = {"token_ids": token_ids(), "positions": positions}
    np.testing.assert_allclose(model(inputs), exact(inputs), atol=0.05)


@every_name
def test_tokens_beyond_the_longest_sequence_raise(name):
    longest = encodings.row_of(name).longest
    model = encoder(encodings.make(name))
    if longest is None:
        assert np.isfinite(model(token_ids(200))).all()
        return
    model(token_ids(longest, batch_size=1))
    with pytest.raises(ValueError, match=rf"{longest}\b.*max_position"):
        model(token_ids(longest + 1, batch_size=1))


def own_and_other_samplers():
    """Every encoding with its own sampler and, where it takes one, others."""
    for variant in encodings.BIDIRECTIONAL:
        yield variant, None
        if "sampler" in encodings.row_of(variant).alternatives:
            of_rows = variant in encodings.ROWS
            others = samplers.VARIANTS if of_rows else samplers.ROWS
            for sampler in others:
                integers = samplers.row_of(sampler).integers
                dtype = "int32" if integers else "float32"
                if dtype in encodings.row_of(variant).position_dtypes:
                    yield variant, sampler


def padded(sequences, side):
    """Ids and mask of sequences that padding brings to one length."""
    longest = max(map(len, sequences)) + 2
    ids = np.full((len(sequences), longest), 1, "int32")
    mask = np.zeros(ids.shape, "bool")
    for example, tokens in enumerate(sequences):
        real = (
            slice(len(tokens)) if side == "right" else slice(-len(tokens), None)
        )
        ids[example, real], mask[example, real] = tokens, True
    return ids, mask


@pytest.mark.parametrize(
    ("variant", "sampler"), [*own_and_other_samplers()], ids=str
)
def test_padding_changes_nothing(variant, sampler):
    changes = {"sampler": samplers.make(sampler)} if sampler else {}
    encoding = encodings.make(variant, **changes)
    model = encoder(encoding)

    def logits(token_ids, **inputs):
        # The same random numbers for every call.
        samplers.reset(model.encoding.sampler)
        return np.asarray(model({"token_ids": token_ids, **inputs}))

    ids = token_ids(6)
    sequences = [ids[0], ids[1, :4]]
    expected = [logits(ids)[0], logits(ids[:, :4])[1]]
    right, right_mask = padded(sequences, "right")
    left, left_mask = padded(sequences, "left")
    short, _ = padded(ids[:, :4], "right")
    for mask, result in (
        (right_mask, logits(right, lengths=np.array([6, 4]))),
        (right_mask, logits(right, padding_mask=right_mask)),
        (left_mask, logits(left, padding_mask=left_mask)),
    ):
        for example, wanted in enumerate(expected):
            np.testing.assert_allclose(
                result[example, mask[example]], wanted, atol=1e-5
            )
    np.testing.assert_allclose(
        logits(short, lengths=np.array(4))[1, :4], expected[1], atol=1e-5
    )
