import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.layers import (
    FIRE,
    ALiBi,
    AxialEncoding,
    GeometricAttention,
    GridPositions,
    MultiHeadAttention,
    RandomizedPositions,
    RelativeEncoding,
    RoPE,
    TransformerBlock,
)
from keras_lengen.layers.attention import computation
from tests.keras_lengen.layers.encodings.table import (
    BATCH,
    BIDIRECTIONAL,
    HEADS,
    MODEL_DIM,
    WIDTH,
    at_stage,
    in_families,
    make,
)
from tests.keras_lengen.layers.positions import table as samplers
from tests.products import product

TOKENS, CHUNK = 13, 4
LENGTHS = np.array([13, 9])
MASK = np.arange(TOKENS) < LENGTHS[:, None]
RANDOM = np.random.default_rng(3)
INPUTS, OTHERS = RANDOM.normal(size=(2, BATCH, TOKENS, MODEL_DIM)).astype(
    "float32"
)
POSITIONS = {
    "shared": np.sort(RANDOM.choice(50, TOKENS, replace=False)),
    "own": np.sort([RANDOM.choice(50, TOKENS, replace=False) for _ in INPUTS]),
}
COMPILE = {
    "eager": lambda function: function,
    "graph": tf.function,
    "xla": functools.partial(tf.function, jit_compile=True),
    "unknown_length": functools.partial(
        tf.function,
        input_signature=[tf.TensorSpec((BATCH, None, MODEL_DIM))],
    ),
}


def self_attention(encoding=None, kind=MultiHeadAttention, **arguments):
    layer = kind(HEADS, WIDTH, encoding=encoding, **arguments)
    layer.build(INPUTS.shape, INPUTS.shape)
    return layer


def reset_draws(layer):
    """Makes all that a layer draws from draw again what it drew first."""
    for state in layer.non_trainable_variables:
        state.assign([1, 2])


def program(layer, chunk_size, mode="eager", **arguments):
    """A function of inputs: what a layer makes of them, and gradients.

    Those are of one loss, by the inputs and by all weights.
    """
    layer.chunk_size = chunk_size

    @COMPILE[mode]
    def output_and_gradients(*inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            # One tensor is query and value.
            output = layer(*(inputs * 2)[: max(len(inputs), 2)], **arguments)
            # No two numbers count the same.
            numbers = tf.reshape(tf.cast(output, "float32"), (-1,))
            indices = tf.cast(tf.range(tf.size(numbers)), "float32")
            loss = tf.reduce_sum(tf.sin(indices) * numbers)
        weights = layer.trainable_variables
        return output, loss, *tape.gradient(loss, (*inputs, *weights))

    def run(*inputs):
        reset_draws(layer)
        results = output_and_gradients(*map(tf.convert_to_tensor, inputs))
        # TensorFlow gives the gradient of a table that is read by rows.
        return [
            np.asarray(tf.cast(tf.convert_to_tensor(array), "float32"))
            for array in results
        ]

    return run


def assert_chunks_change_nothing(
    layer, *inputs, chunk_size=CHUNK, mode="eager", tolerance=1e-5, **arguments
):
    direct = program(layer, None, **arguments)(*inputs)
    in_chunks = program(layer, chunk_size, mode, **arguments)(*inputs)
    for expected, found in zip(direct, in_chunks, strict=True):
        scale = max(1, np.abs(expected).max())
        np.testing.assert_allclose(found, expected, atol=tolerance * scale)


@pytest.mark.parametrize(
    "variant", product(at_stage("rotation", "bias", None), keep=in_families)
)
def test_every_encoding_is_the_same_in_causal_chunks(variant):
    assert_chunks_change_nothing(
        self_attention(make(variant)),
        INPUTS,
        positions=POSITIONS["shared"],
        use_causal_mask=True,
    )


@pytest.mark.parametrize(
    "encoding",
    product(
        [
            RoPE(),
            RelativeEncoding(),
            RelativeEncoding(distances="sampled"),
            ALiBi(),
            FIRE(),
        ],
        keep=lambda encoding: encoding.reads_ranks,
    ),
    ids=["rotation", "distances", "sampled", "bias", "network"],
)
def test_long_sequences_are_the_same_in_chunks(encoding):
    inputs = RANDOM.normal(size=(1, 512, MODEL_DIM)).astype("float32")
    assert_chunks_change_nothing(
        self_attention(encoding),
        inputs,
        chunk_size=100,
        mode="graph",
        use_causal_mask=True,
    )


@pytest.mark.parametrize(
    "variant",
    product(
        [v for v in at_stage("bias") if v in BIDIRECTIONAL], keep=in_families
    ),
)
def test_every_bias_is_the_same_in_chunks(variant):
    assert_chunks_change_nothing(
        self_attention(make(variant)), INPUTS, positions=POSITIONS["own"]
    )


@pytest.mark.parametrize(
    "sampler", product(samplers.ROWS, keep=["RandomizedPositions"])
)
@pytest.mark.parametrize("distances", ["positions", "sampled"])
def test_every_sampler_is_the_same_in_chunks(sampler, distances):
    encoding = RelativeEncoding(
        distances=distances, sampler=samplers.make(sampler)
    )
    assert_chunks_change_nothing(
        self_attention(encoding),
        INPUTS,
        query_mask=MASK,
        value_mask=MASK,
        training=True,
    )


@pytest.mark.parametrize(
    "row", product([RoPE, ALiBi, RelativeEncoding], keep=[RelativeEncoding])
)
@pytest.mark.parametrize("resample", ["batch", "example"])
def test_rows_and_columns_are_the_same_in_chunks(row, resample):
    encoding = AxialEncoding(
        row=row(),
        column=row(),
        sampler=GridPositions(
            width=5, row=RandomizedPositions(max_position=9, resample=resample)
        ),
    )
    assert_chunks_change_nothing(
        self_attention(encoding), INPUTS, training=True
    )


@pytest.mark.parametrize(
    "shape",
    product(
        map(
            pytest.param,
            [(), (1,), (BATCH,), (1, HEADS), (BATCH, 1), (BATCH, HEADS)],
        ),
        keep=lambda shape: shape in ((), (BATCH, HEADS)),
    ),
    ids=str,
)
@pytest.mark.parametrize("others", ["", "causal and padded"])
def test_masks_are_the_same_in_chunks(shape, others):
    arguments = {}
    if others:
        arguments = {"use_causal_mask": True, "value_mask": MASK}
    mask = RANDOM.random((*shape, TOKENS, TOKENS)) < 0.5
    mask[..., 0] = True
    assert_chunks_change_nothing(
        self_attention(ALiBi()), INPUTS, attention_mask=mask, **arguments
    )


@pytest.mark.parametrize(
    "encoding",
    product([RoPE, ALiBi, RelativeEncoding, FIRE], keep=[RelativeEncoding]),
)
@pytest.mark.parametrize("tokens", [6, 8], ids="{} queries".format)
@pytest.mark.parametrize("causal", [True, False], ids=["causal", ""])
def test_cross_attention_is_the_same_in_chunks(encoding, tokens, causal):
    assert_chunks_change_nothing(
        self_attention(encoding()),
        INPUTS[:, :tokens],
        OTHERS,
        OTHERS[..., ::-1].copy(),
        value_mask=MASK,
        positions=POSITIONS["own"][:, -tokens:],
        key_positions=POSITIONS["shared"],
        use_causal_mask=causal,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_key_value_heads": 1},
        {"use_bias": False},
        {"scale_scores": False, "value_dim": 3, "output_dim": 5},
    ],
    ids=str,
)
def test_every_shape_of_head_is_the_same_in_chunks(arguments):
    layer = self_attention(RelativeEncoding(), **arguments)
    assert_chunks_change_nothing(layer, INPUTS)


@pytest.mark.parametrize("normalize", product([True, False], keep=[True]))
@pytest.mark.parametrize("causal", [True, False], ids=["causal", ""])
def test_geometric_attention_is_the_same_in_chunks(normalize, causal):
    assert_chunks_change_nothing(
        self_attention(kind=GeometricAttention, normalize=normalize),
        INPUTS,
        value_mask=MASK,
        use_causal_mask=causal,
    )


@pytest.mark.parametrize("chunk_size", product([1, 3, 4, 11, 12], keep=[1, 11]))
def test_the_number_of_tokens_need_not_be_a_multiple(chunk_size):
    layer = self_attention(RelativeEncoding(distances="sampled"))
    assert_chunks_change_nothing(layer, INPUTS[:, :12], chunk_size=chunk_size)


@pytest.mark.parametrize(
    "mode", product(["graph", "unknown_length", "xla"], keep=["xla"])
)
@pytest.mark.parametrize(
    ("encoding", "kind"),
    product(
        [
            (RelativeEncoding(distances="sampled"), MultiHeadAttention),
            (None, GeometricAttention),
        ],
        keep=lambda encoding, kind: encoding is not None,
    ),
    ids=["relative", "geometric"],
)
def test_compiled_chunks_change_nothing(mode, encoding, kind):
    assert_chunks_change_nothing(
        self_attention(encoding, kind),
        INPUTS,
        mode=mode,
        positions=POSITIONS["own"],
        use_causal_mask=True,
    )


@pytest.mark.parametrize("mode", product(["eager", "graph"], keep=["eager"]))
def test_half_precision_is_the_same_in_chunks(mode):
    layer = self_attention(RelativeEncoding(), dtype="mixed_bfloat16")
    assert_chunks_change_nothing(layer, INPUTS, mode=mode, tolerance=0.04)


def attended_queries(layer, monkeypatch):
    """A set that fills with the numbers of queries attended together."""
    numbers, attend = set(), layer._attend

    def counted(queries, others, **arguments):
        numbers.add(queries["query"].shape[1])
        return attend(queries, others, **arguments)

    monkeypatch.setattr(layer, "_attend", counted)
    return numbers


@pytest.mark.parametrize(
    ("chunk_size", "tokens", "expected"),
    [
        (None, 13, 13),
        (13, 13, 13),
        (5, 13, 5),
        ("auto", 10, 10),
        ("auto", 11, 4),
        ("auto", 13, 3),
    ],
)
def test_the_size_of_chunks(chunk_size, tokens, expected, monkeypatch):
    monkeypatch.setattr(computation, "DIRECT_PAIRS", 100)
    monkeypatch.setattr(computation, "CHUNK_PAIRS", 44)
    layer = self_attention(chunk_size=chunk_size)
    numbers = attended_queries(layer, monkeypatch)
    inputs = ops.convert_to_tensor(INPUTS[:, :tokens])
    layer(inputs, inputs)
    assert numbers == {expected}
    numbers.clear()
    layer(inputs, inputs, return_attention_scores=True)
    assert numbers == {tokens}


def test_automatic_chunks_need_a_known_length(monkeypatch):
    monkeypatch.setattr(computation, "DIRECT_PAIRS", 1)
    layer = self_attention()
    numbers = attended_queries(layer, monkeypatch)
    compiled = COMPILE["unknown_length"](lambda inputs: layer(inputs, inputs))
    compiled(tf.convert_to_tensor(INPUTS))
    assert numbers == {None}


@pytest.mark.parametrize("chunk_size", [None, 16, 24])
def test_dropout_drops_its_share_of_the_weights(chunk_size):
    tokens, rate = 64, 0.25
    layer = MultiHeadAttention(
        1, tokens, dropout=rate, use_bias=False, chunk_size=chunk_size
    )
    # All weights are equal, and every key has a place of its own in the output.
    unit = np.eye(tokens, dtype="float32")
    layer.build((8, tokens, tokens), (8, tokens, tokens))
    for dense, kernel in (
        (layer.query_dense, 0 * unit),
        (layer.value_dense, unit),
        (layer.output_dense, unit),
    ):
        dense.kernel.assign(kernel)
    inputs = ops.convert_to_tensor(np.tile(unit, (8, 1, 1)))
    plain = np.asarray(layer(inputs, inputs))
    np.testing.assert_allclose(plain, np.full_like(plain, 1 / tokens))
    first, second = (
        tokens * np.asarray(layer(inputs, inputs, training=True)) for _ in "12"
    )
    kept = 1 / (1 - rate)
    for weights in (first, second):
        np.testing.assert_allclose(
            weights, np.where(weights > 0, kept, 0), rtol=1e-5
        )
        # Within four deviations.
        deviation = (rate * (1 - rate) / weights.size) ** 0.5
        assert abs(np.mean(weights == 0) - rate) < 4 * deviation
    # Calls, examples and chunks draw apart: both drop a share of rate ** 2.
    for one, other in (
        (first, second),
        (first[:4], first[4:]),
        (first[:, :16], first[:, 16:32]),
        (first[:, :24], first[:, 24:48]),
    ):
        together = np.mean((one == 0) & (other == 0))
        assert abs(together - rate**2) < 0.02


@pytest.mark.parametrize(
    "mode",
    product(["eager", "graph", "unknown_length", "xla"], keep=["graph"]),
)
def test_dropout_is_the_same_forward_and_backward(mode):
    layer = self_attention(RelativeEncoding(), dropout=0.5)
    run = program(layer, CHUNK, mode, training=True)
    direction = OTHERS / 100
    _, after, *_ = run(INPUTS + direction)
    _, before, *_ = run(INPUTS - direction)
    _, _, gradient, *_ = run(INPUTS)
    slope = np.sum(gradient * direction)
    np.testing.assert_allclose(slope, (after - before) / 2, rtol=0.01)


def fitted_weights(chunk_size, *, jit_compile=False):
    """The weights of a model before and after training."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((TOKENS, MODEL_DIM))
    block = TransformerBlock(
        HEADS,
        encoding=RelativeEncoding(),
        chunk_size=chunk_size,
        use_causal_mask=True,
    )
    model = keras.Model(inputs, block(inputs))
    before = model.get_weights()
    model.compile(
        "sgd", "mse", jit_compile=jit_compile, run_eagerly=not jit_compile
    )
    model.fit(INPUTS, OTHERS, epochs=3, verbose=0)
    return before, model.get_weights()


@pytest.mark.parametrize("jit_compile", product([True, False], keep=[False]))
def test_a_model_trained_in_chunks_is_the_same(jit_compile):
    _, direct = fitted_weights(None)
    before, in_chunks = fitted_weights(CHUNK, jit_compile=jit_compile)
    for old, expected, found in zip(before, direct, in_chunks, strict=True):
        assert not np.array_equal(old, found)
        np.testing.assert_allclose(found, expected, atol=1e-5)
