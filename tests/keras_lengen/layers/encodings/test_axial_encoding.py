import keras
import numpy as np
import pytest

from keras_lengen.layers import (
    FIRE,
    ALiBi,
    AxialEncoding,
    CoPE,
    GridPositions,
    LearnedEncoding,
    LogKERPLE,
    MultiHeadAttention,
    NoPE,
    RandomizedPositions,
    RelativeEncoding,
    RoPE,
    SinusoidalEncoding,
    T5Bias,
    XPos,
)
from keras_lengen.models import TransformerEncoder
from tests.keras_lengen.layers.arguments import assert_config_round_trip
from tests.products import product

RANDOM = np.random.default_rng(0)
TOKENS, WIDTH = 7, 3
GRID = (np.arange(TOKENS) // WIDTH, np.arange(TOKENS) % WIDTH)
QUERY, KEY = RANDOM.normal(size=(2, 2, TOKENS, 4, 8)).astype("float32")


def axial(row, column, **arguments):
    return AxialEncoding(
        row=row, column=column, sampler=GridPositions(width=WIDTH), **arguments
    )


@pytest.mark.parametrize(
    ("attribute", "true", "false"),
    [
        ("share_layers", ALiBi(), RelativeEncoding()),
        ("shift_invariant", ALiBi(), FIRE()),
        ("takes_negative", ALiBi(), FIRE()),
        (
            "takes_fractions",
            SinusoidalEncoding(),
            LearnedEncoding(max_position=8),
        ),
        (
            "defined_past_training",
            SinusoidalEncoding(),
            LearnedEncoding(max_position=8),
        ),
    ],
)
def test_it_promises_what_both_promise(attribute, true, false):
    assert getattr(axial(true, true), attribute)
    assert not getattr(axial(true, false), attribute)
    assert not getattr(axial(false, true), attribute)


def test_half_of_the_features_of_embeddings():
    encoding = axial(
        SinusoidalEncoding(), SinusoidalEncoding(max_wavelength=100)
    )
    embeddings = RANDOM.normal(size=(2, TOKENS, 16)).astype("float32")
    found = np.split(np.asarray(encoding(embeddings)), 2, axis=-1)
    halves = np.split(embeddings, 2, axis=-1)
    for half, plain, positions, wavelength in zip(
        found, halves, GRID, (10000, 100), strict=True
    ):
        expected = SinusoidalEncoding(max_wavelength=wavelength)(
            plain, positions=positions
        )
        np.testing.assert_allclose(half, expected, atol=1e-6)


def test_half_of_the_features_of_every_head_turn():
    query, key = axial(RoPE(), RoPE(max_wavelength=100))(QUERY, KEY)
    for found, plain in ((query, QUERY), (key, KEY)):
        rows = RoPE()(plain[..., :4], positions=GRID[0])
        columns = RoPE(max_wavelength=100)(plain[..., 4:], positions=GRID[1])
        expected = np.concatenate([rows, columns], axis=-1)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    alone = axial(RoPE(), RoPE(max_wavelength=100))(QUERY)
    np.testing.assert_array_equal(alone, query)


@pytest.mark.parametrize("causal", [False, True])
def test_half_of_the_heads_are_biased(causal):
    encoding = axial(ALiBi(), RelativeEncoding())
    encoding.build(QUERY.shape, KEY.shape)
    bias = np.asarray(encoding(QUERY, KEY, causal=causal))
    rows = ALiBi()(
        QUERY[:, :, :2], KEY[:, :, :2], positions=GRID[0], causal=causal
    )
    np.testing.assert_allclose(
        bias[:, :2], np.repeat(rows, 2, axis=0), atol=1e-6
    )
    columns = encoding.column(
        QUERY[:, :, 2:], KEY[:, :, 2:], positions=GRID[1], causal=causal
    )
    np.testing.assert_allclose(bias[:, 2:], columns, atol=1e-6)


def test_columns_have_two_sides_in_causal_attention():
    encoding = axial(T5Bias(), T5Bias())
    encoding.build(QUERY.shape, KEY.shape)
    bias = np.asarray(encoding(QUERY, KEY, causal=True))
    for part, half, positions, causal in (
        (slice(2), encoding.row, GRID[0], True),
        (slice(2, None), encoding.column, GRID[1], False),
    ):
        expected = half(QUERY[:, :, part], positions=positions, causal=causal)
        np.testing.assert_array_equal(
            bias[:, part], np.repeat(expected, 2, axis=0)
        )
    layer = MultiHeadAttention(4, 8, encoding=axial(ALiBi(), ALiBi()))
    layer.build((2, 7, 16), (2, 7, 16))
    for dense in (layer.query_dense, layer.key_dense):
        dense.kernel.assign(np.zeros(dense.kernel.shape))
    states = np.ones((2, 7, 16), "float32")
    _, weights = layer(
        states, states, use_causal_mask=True, return_attention_scores=True
    )
    # The query in row 1, column 1; keys in columns 0 and 2 of row 0.
    left, right = np.asarray(weights)[0, 2, 4, [0, 2]]
    np.testing.assert_allclose(left / right, np.exp(0.5 * 2**-4), rtol=1e-5)


@pytest.mark.parametrize(
    ("row", "column"),
    product(
        [
            (SinusoidalEncoding, SinusoidalEncoding),
            (RoPE, RoPE),
            (ALiBi, LogKERPLE),
            (RelativeEncoding, RelativeEncoding),
        ],
        keep=[(RelativeEncoding, RelativeEncoding)],
    ),
)
@pytest.mark.parametrize("run_eagerly", product([False, True], keep=[True]))
def test_a_model_learns_with_it_and_is_saved(
    tmp_path, row, column, run_eagerly, loading
):
    encoding = AxialEncoding(
        row=row(),
        column=column(),
        sampler=GridPositions(
            width=3, row=RandomizedPositions(max_position=20, seed=1)
        ),
    )
    assert_config_round_trip(encoding)
    model = TransformerEncoder(
        vocabulary_size=5,
        output_size=5,
        num_layers=2,
        num_heads=2,
        model_dim=16,
        encoding=encoding,
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        "adam", loss, jit_compile=not run_eagerly, run_eagerly=run_eagerly
    )
    ids = np.random.default_rng(0).integers(0, 5, (4, 7))
    history = model.fit(ids, ids, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    inputs = {"token_ids": ids, "positions": tuple(np.int32(GRID))}
    loading.check(model, tmp_path / "model.keras", inputs)


@pytest.mark.parametrize("row", [SinusoidalEncoding, RoPE, RelativeEncoding])
def test_padding_changes_nothing(row):
    model = TransformerEncoder(
        vocabulary_size=5,
        output_size=5,
        num_layers=1,
        num_heads=2,
        model_dim=16,
        encoding=axial(row(), row()),
    )
    ids = np.random.default_rng(0).integers(0, 5, (2, 7))
    mask = np.arange(7) < np.array([[4], [7]])
    padded = model({"token_ids": ids, "padding_mask": mask})
    np.testing.assert_allclose(padded[:1, :4], model(ids[:1, :4]), atol=1e-5)
    np.testing.assert_allclose(padded[1], model(ids)[1], atol=1e-5)


def test_what_cannot_work():
    with pytest.raises(ValueError, match=r"one stage; .* \(rotation\)"):
        axial(RoPE(), ALiBi())
    with pytest.raises(ValueError, match="one stage"):
        axial(NoPE(), NoPE())
    with pytest.raises(ValueError, match="row=CoPE counts tokens"):
        axial(CoPE(), ALiBi())
    with pytest.raises(ValueError, match="column=CoPE needs positions"):
        axial(ALiBi(), CoPE())
    with pytest.raises(ValueError, match="column=XPos needs positions"):
        axial(RoPE(), XPos())
    with pytest.raises(ValueError, match="cannot share 3 heads"):
        axial(ALiBi(), ALiBi())(QUERY[:, :, :3])
    with pytest.raises(ValueError, match="sampler=GridPositions"):
        AxialEncoding(row=RoPE(), column=RoPE())(QUERY)
    with pytest.raises(ValueError, match="start_index=3"):
        axial(RoPE(), RoPE())(QUERY, start_index=3)
    attention = MultiHeadAttention(4, 8, encoding=axial(RoPE(), RoPE()))
    x = np.ones((1, 4, 16), "float32")
    assert attention(x, x).shape == (1, 4, 16)
