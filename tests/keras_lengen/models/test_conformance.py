"""Every encoding and every sampler in a whole model."""

import keras
import numpy as np
import pytest

from keras_lengen.layers import MultiHeadAttention
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.encodings.table import FAMILIES
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models.small import (
    MODELS,
    OUTPUT_SIZE,
    inputs,
    make,
    reset_samplers,
    token_ids,
)
from tests.products import mark_slow, product

SPREAD = np.array([1, 4, 5, 11, 30, 47], "int32")


def pairs(variants, decoders=FAMILIES, both=FAMILIES):
    """Every model with every encoding that it may have.

    Other arguments of an encoding are tested in the layer: models with them
    are slow tests.

    Args:
        variants: Encodings, keys of their table.
        decoders: Those that are not slow in a decoder.
        both: Those that are not slow in an encoder and a decoder.
    """
    quick = {
        "encoder": encodings.ROWS,
        "decoder": decoders,
        "encoder_decoder": both,
    }
    for model in MODELS:
        for variant in variants:
            if model == "decoder" or variant in encodings.BIDIRECTIONAL:
                slow = variant in encodings.ALIKE or variant not in quick[model]
                marks = pytest.mark.slow if slow else ()
                yield pytest.param(model, variant, marks=marks)


def in_families(model, variant, *others):
    """Whether the default run tests them."""
    if model == "encoder":
        return variant in ("SinusoidalEncoding", "RelativeEncoding", "FIRE")
    return (model, variant) in (
        ("decoder", "XPos"),
        ("encoder_decoder", "RandomizedRoPE"),
    )


every_variant = pytest.mark.parametrize(
    ("model", "variant"),
    product(
        pairs(encodings.VARIANTS, decoders=encodings.ROWS), keep=in_families
    ),
)
every_name = pytest.mark.parametrize(
    ("model", "name"), product(pairs(encodings.ROWS), keep=in_families)
)


@every_variant
def test_a_saved_model_is_the_same(model, variant, tmp_path, loading):
    model = make(model, variant, num_layers=2)
    spread = inputs(model, token_ids(), positions=SPREAD)
    loading.check(model, tmp_path / "model.keras", spread)


@pytest.mark.parametrize(
    "variant", product(encodings.BIDIRECTIONAL, keep=encodings.in_families)
)
def test_a_saved_functional_model_is_the_same(variant, tmp_path, loading):
    """The encoding by itself, and in attention where it belongs there."""
    encoding = encodings.make(variant)
    arrays = encodings.random_inputs(encoding.stage)
    symbols = [keras.Input((None, *x.shape[2:])) for x in arrays]
    positions = keras.Input((None,), dtype="int32")
    outputs = [encoding(*symbols, positions=positions)]
    if encoding.stage != "embeddings":
        attention = MultiHeadAttention(
            encodings.HEADS, encodings.WIDTH, encoding=encodings.make(variant)
        )
        flat = keras.layers.Reshape((-1, encodings.MODEL_DIM))(symbols[0])
        outputs.append(attention(flat, flat, positions=positions))
    model = keras.Model([*symbols, positions], keras.tree.flatten(outputs))
    batch = [*arrays, np.tile(SPREAD, (encodings.BATCH, 1))]
    loading.check(model, tmp_path / "model.keras", batch)


@pytest.mark.parametrize(
    ("model", "name"),
    product(
        pairs(
            encodings.ROWS,
            decoders=("XPos", "RelativeEncoding"),
            both=("RandomizedRoPE", "FIRE"),
        ),
        keep=[("encoder", "FIRE")],
    ),
)
def test_a_training_step_moves_every_weight(model, name):
    # Encodings by themselves are compiled in a test of their own.
    jit_compile = name in FAMILIES
    model = make(
        model,
        name,
        # What these add to the time of compilation is the same for all.
        dropout=0,
        normalization=None,
        dtype="mixed_bfloat16",
    )
    before = model.get_weights()
    model.compile(
        optimizer=keras.optimizers.SGD(1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile,
        run_eagerly=not jit_compile,
    )
    # So many that no hidden unit of a bias is in one state for all distances.
    ids = token_ids(60, batch_size=4)
    batch = inputs(model, ids)
    history = model.fit(batch, ids % OUTPUT_SIZE, epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    for weight, old in zip(model.weights, before, strict=True):
        assert np.isfinite(weight).all()
        if weight.name in encodings.IDLE_WEIGHTS:
            np.testing.assert_allclose(weight, old, atol=1e-5)
        else:
            assert not np.array_equal(weight, old), weight.path


@pytest.mark.parametrize(
    ("policy", "dtype"),
    product(
        [("mixed_bfloat16", "int32"), ("mixed_float16", "float32")],
        keep=[("mixed_bfloat16", "int32")],
    ),
)
@every_name
def test_half_precision_tells_1000_from_1001(model, name, policy, dtype):
    if dtype not in encodings.ROWS[name].position_dtypes:
        return
    model = make(model, name, dtype=policy)
    near = np.array([990, 992, 994, 996, 999, 1000])
    logits = []
    for positions in (near, near + (near == 1000)):
        positions = keras.ops.convert_to_tensor(positions.astype(dtype))
        batch = inputs(model, token_ids(), positions=positions)
        logits.append(np.asarray(model(batch)))
        assert logits[-1].dtype == "float32"
        assert np.isfinite(logits[-1]).all()
    differ = not np.array_equal(*logits)
    assert differ == encodings.ROWS[name].uses_positions
    assert {weight.dtype for weight in model.weights} == {"float32"}


@every_variant
def test_half_precision_is_near_float32_at_large_positions(model, variant):
    # Embeddings large enough for attention to tell tokens apart.
    exact, half = (
        make(model, variant, embedding_scale=48.0, dtype=dtype)
        for dtype in ("float32", "mixed_bfloat16")
    )
    half.set_weights(exact.get_weights())
    positions = encodings.row_of(variant).top - np.array([9, 7, 5, 3, 2, 0])
    batch = inputs(exact, token_ids(), positions=positions)
    np.testing.assert_allclose(half(batch), exact(batch), atol=0.05)


@every_name
def test_tokens_beyond_the_longest_sequence_raise(model, name):
    longest = encodings.row_of(name).longest
    model = make(model, name)
    if longest is None:
        assert np.isfinite(model(inputs(model, token_ids(200)))).all()
        return
    model(inputs(model, token_ids(longest, batch_size=1)))
    with pytest.raises(ValueError, match=rf"{longest}\b.*max_position"):
        model(inputs(model, token_ids(longest + 1, batch_size=1)))


def own_and_other_samplers():
    """All pairs with their own sampler; encoders with others too.

    One encoding of each stage has all samplers, the rest have two.
    """
    of_each_stage = ("SinusoidalEncoding", "RoPE", "RelativeEncoding")
    two = ("RandomizedPositions", "WarpedPositions")
    for pair in pairs(encodings.VARIANTS, decoders=encodings.ROWS):
        model, variant = pair.values
        yield pytest.param(model, variant, None, marks=pair.marks)
        row = encodings.row_of(variant)
        if model == "encoder" and "sampler" in row.alternatives:
            for sampler in (
                samplers.VARIANTS if variant in of_each_stage else two
            ):
                numbers = samplers.row_of(sampler)
                dtype = "int32" if numbers.integers else "float32"
                defined = numbers.bottom >= row.bottom
                if defined and dtype in row.position_dtypes:
                    yield pytest.param(
                        model, variant, sampler, marks=pair.marks
                    )


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
    ("model", "variant", "sampler"),
    product(
        mark_slow(own_and_other_samplers(), samplers.ALIKE),
        keep=lambda model, variant, sampler: (
            in_families(model, variant)
            and (sampler is None or variant == "RelativeEncoding")
            and sampler in (None, "WarpedPositions")
        ),
    ),
    ids=str,
)
def test_padding_changes_nothing(model, variant, sampler):
    changes = {"sampler": samplers.make(sampler)} if sampler else {}
    model = make(model, variant, encoding_changes=changes)

    def logits(token_ids, **others):
        # The same random numbers for every call.
        reset_samplers(model)
        return np.asarray(model(inputs(model, token_ids, **others)))

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
