import keras
import numpy as np
import pytest

from keras_lengen.layers import (
    ALiBi,
    AxialEncoding,
    CoPE,
    GridPositions,
    NoPE,
    RandomizedPositions,
    RelativeEncoding,
    RoPE,
    SelectiveRoPE,
    SinusoidalEncoding,
    T5Bias,
    XPos,
)
from tests.keras_lengen.models.small import decoder
from tests.refusals import refuses

RANDOM = np.random.default_rng(0)
TOKENS, WIDTH = 7, 3
GRID = (np.arange(TOKENS) // WIDTH, np.arange(TOKENS) % WIDTH)
QUERY, KEY = RANDOM.normal(size=(2, 2, TOKENS, 4, 8)).astype("float32")


def axial(row, column, **arguments):
    return AxialEncoding(
        row=row, column=column, sampler=GridPositions(width=WIDTH), **arguments
    )


def test_layers_share_what_both_share():
    shared, own = ALiBi(), RelativeEncoding()
    assert axial(shared, shared).share_layers
    for pair in ((shared, own), (own, shared)):
        assert not axial(*pair).share_layers


def test_rows_have_two_sides_in_causal_attention_if_they_may_fall():
    rows = RandomizedPositions(max_position=9, ordered=False)
    sampler = GridPositions(width=WIDTH, row=rows)
    encoding = AxialEncoding(row=ALiBi(), column=ALiBi(), sampler=sampler)
    past, all_keys = (
        encoding(QUERY, KEY, positions=GRID, causal=causal)
        for causal in (True, False)
    )
    np.testing.assert_array_equal(past, all_keys)


@pytest.mark.parametrize("row", [XPos(), T5Bias()])
def test_rows_keep_the_order_of_the_tokens_where_they_must(row):
    column = T5Bias() if row.stage == "bias" else RoPE()
    assert axial(row, column).requires_increasing_positions
    model = decoder(axial(row, column))
    ids = np.zeros((2, TOKENS), "int32")
    model({"token_ids": ids, "positions": GRID})
    falling = {"token_ids": ids, "positions": (GRID[0][::-1], GRID[1])}
    with pytest.raises(ValueError, match="must not fall from token to token"):
        model(falling)


@pytest.mark.parametrize("cls", [SinusoidalEncoding, RoPE])
def test_half_of_the_features(cls):
    encoding = axial(cls(), cls(max_wavelength=100))
    inputs = [QUERY, KEY]
    if cls is SinusoidalEncoding:
        inputs = [QUERY.reshape(2, TOKENS, -1)]
    outputs = keras.tree.flatten(encoding(*inputs))
    for found, plain in zip(outputs, inputs, strict=True):
        rows, columns = np.split(plain, 2, axis=-1)
        expected = [
            cls()(rows, positions=GRID[0]),
            cls(max_wavelength=100)(columns, positions=GRID[1]),
        ]
        expected = np.concatenate(expected, axis=-1)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_array_equal(encoding(inputs[0]), outputs[0])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("cls", [RelativeEncoding, T5Bias])
def test_half_of_the_heads_are_biased(cls, causal):
    """Columns have two sides in causal attention, too."""
    encoding = axial(T5Bias(), cls())
    encoding.build(QUERY.shape, KEY.shape)
    bias = np.asarray(encoding(QUERY, KEY, causal=causal))
    for part, half, positions, one_sided in (
        (slice(2), encoding.row, GRID[0], causal),
        (slice(2, None), encoding.column, GRID[1], False),
    ):
        expected = half(
            QUERY[:, :, part],
            KEY[:, :, part],
            positions=positions,
            causal=one_sided,
        )
        expected = np.broadcast_to(expected, (2, 2, TOKENS, TOKENS))
        np.testing.assert_allclose(bias[:, part], expected, atol=1e-6)


@refuses(
    (lambda: axial(RoPE(), ALiBi()), r"one stage; .* \(rotation\)"),
    (lambda: axial(NoPE(), NoPE()), "one stage"),
    (lambda: axial(CoPE(), ALiBi()), "row=CoPE counts tokens"),
    (lambda: axial(ALiBi(), CoPE()), "column=CoPE needs positions"),
    (lambda: axial(RoPE(), XPos()), "column=XPos needs positions"),
    (lambda: axial(RoPE(), SelectiveRoPE()), "no use for rows"),
    (lambda: axial(ALiBi(), ALiBi())(QUERY[:, :, :3]), "cannot share 3 heads"),
    (
        lambda: AxialEncoding(row=RoPE(), column=RoPE())(QUERY),
        "sampler=GridPositions",
    ),
    (lambda: axial(RoPE(), RoPE())(QUERY, start_index=3), "start_index=3"),
)
def test_what_cannot_work(call):
    call()
