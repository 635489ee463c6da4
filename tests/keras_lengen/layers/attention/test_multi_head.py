"""What a call of attention takes, draws, writes to a cache and refuses."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.layers import (
    ALiBi,
    AxialEncoding,
    GridPositions,
    MultiHeadAttention,
    NoPE,
    NTKRoPE,
    RandomizedALiBi,
    RandomizedPositions,
    RandomizedRoPE,
    RelativeEncoding,
    RoPE,
    SinusoidalEncoding,
    YaRN,
)
from tests.covering import cover
from tests.keras_lengen.layers.arguments import (
    differ,
)
from tests.keras_lengen.layers.attention import oracle
from tests.keras_lengen.layers.positions.table import reset

HEADS, WIDTH, TOKENS = 2, 8, 6
RANDOM = np.random.default_rng(2)
X, OTHERS, KEYS = (
    ops.convert_to_tensor(RANDOM.normal(size=(2, tokens, 16)), "float32")
    for tokens in (TOKENS, 9, 9)
)
SHARED = np.array([0, 3, 4, 9, 30, 31])
OWN = np.array([SHARED, [1, 2, 8, 15, 16, 40]])


def attention(encoding=None, **kwargs):
    return MultiHeadAttention(HEADS, WIDTH, encoding=encoding, **kwargs)


def call_by_cache(layer, chunks, positions=None, **arguments):
    """Outputs of causal attention to some tokens after the other."""
    cache = layer.make_cache(*X.shape[:2])
    outputs, start = [], 0
    for tokens in chunks:
        part = slice(start, start + tokens)
        if positions is not None:
            arguments["positions"] = keras.tree.map_structure(
                lambda axis, part=part: axis[..., part], positions
            )
            arguments["key_positions"] = positions
        # One tensor: in self-attention, query and value are the same.
        chunk = X[:, part]
        output, cache = layer(
            *(chunk, chunk),
            cache=cache,
            cache_update_index=start,
            use_causal_mask=True,
            **arguments,
        )
        outputs.append(output)
        start += tokens
    return np.concatenate(outputs, axis=1)


def assert_cache_changes_nothing(layer, chunks, **arguments):
    found = call_by_cache(layer, chunks, **arguments)
    full = layer(X, X, use_causal_mask=True, **arguments)
    np.testing.assert_allclose(found, full, atol=1e-5)


@pytest.mark.parametrize(
    ("encoding", "options", "causal", "heads_of_mask"),
    cover(
        [NoPE, RoPE, ALiBi, RelativeEncoding],
        [
            {},
            {"num_key_value_heads": 1, "value_dim": 3},
            {"use_sinks": True, "sliding_window": 4},
            {"score_factor": "log_length"},
        ],
        [True, False],
        [None, (), (2,), (2, HEADS)],
    ),
)
def test_other_sequences_are_attended_to_by_the_definition(
    encoding, options, causal, heads_of_mask
):
    layer = attention(encoding(), **options)
    mask = None
    if heads_of_mask is not None:
        mask = RANDOM.random((*heads_of_mask, TOKENS, 9)) < 0.6
        mask[..., 0] = True
        mask[..., -3:] |= np.eye(TOKENS, dtype=bool)[:, -3:]
    places = {"positions": SHARED, "key_positions": np.arange(9)}
    found = layer(
        *(X, OTHERS, KEYS),
        attention_mask=mask,
        use_causal_mask=causal,
        return_attention_scores=True,
        **places,
    )
    expected = oracle.attend(
        *(layer, *map(np.asarray, (X, OTHERS, KEYS))),
        causal=causal,
        mask=mask,
        **places,
    )
    sees = oracle.find_visible(layer, TOKENS, 9, causal, mask).any(-1)
    sees = np.broadcast_to(sees, (2, HEADS, TOKENS))
    for own, other in zip(found, expected, strict=True):
        rows = sees.all(axis=1) if own.ndim == 3 else sees
        np.testing.assert_allclose(
            np.asarray(own)[rows], other[rows], atol=1e-5
        )


@pytest.mark.parametrize(
    ("name", "mask"),
    [
        ("attention_mask", np.tri(6, dtype="int32")),
        ("value_mask", np.array([[1] * 6, [1, 1, 1, 1, 0, 0]])),
    ],
)
def test_masks_are_booleans_or_ones_and_zeros(name, mask):
    """Other integers, which may be meant to be added to scores, are errors."""
    layer = attention(ALiBi())

    def call(mask):
        return layer(X, X, **{name: mask})

    expected = call(mask == 1)
    for dtype in ("int32", "int64", "uint8"):
        np.testing.assert_array_equal(call(mask.astype(dtype)), expected)
    message = f"{name} must be .* got integers from -10000 to 0"
    with pytest.raises(ValueError, match=message):
        call((mask.astype("int32") - 1) * 10000)


@pytest.mark.parametrize(
    ("encoding", "sampler"),
    cover(
        [RoPE, ALiBi, RelativeEncoding],
        [{}, {"resample": "example"}, {"evaluation": "even"}],
    ),
)
def test_padding_does_not_change_what_is_drawn(encoding, sampler):
    """Real tokens are numbered in order, wherever the padding stands."""
    sampler = RandomizedPositions(max_position=50, **sampler)
    layer = attention(encoding(sampler=sampler))
    places = np.array([[2, 3, 4, 6, 7, 8], [0, 1, 2, 3, 4, 5]])
    mask = np.zeros((2, 9), "bool")
    inputs = np.full((2, 9, 16), 7, "float32")
    for example, tokens in enumerate(places):
        mask[example, tokens] = True
        inputs[example, tokens] = X[example]
    outputs = []
    for masks in ({"query_mask": mask, "value_mask": mask}, {}):
        reset(layer.encoding.sampler)
        states = inputs if masks else np.asarray(X)
        outputs.append(np.asarray(layer(states, states, **masks)))
    found = np.take_along_axis(outputs[0], places[..., None], axis=1)
    np.testing.assert_allclose(found, outputs[1], atol=1e-5)
    reset(layer.encoding.sampler)
    once = layer(inputs, inputs, value_mask=mask)
    np.testing.assert_array_equal(once, outputs[0])


@pytest.mark.parametrize("encoding", [RoPE, ALiBi])
@pytest.mark.parametrize("explicit", [False, True])
def test_a_cache_of_rows_and_columns_changes_nothing(encoding, explicit):
    sampler = GridPositions(width=4)
    axial = AxialEncoding(row=encoding(), column=encoding(), sampler=sampler)
    positions = tuple(map(np.asarray, sampler(X))) if explicit else None
    assert_cache_changes_nothing(
        attention(axial), (2, 1, 3), positions=positions
    )


@pytest.mark.parametrize(
    "encoding",
    [
        NTKRoPE(scaling_factor=4.0, original_length=2),
        YaRN(scaling_factor=None, original_length=2),
    ],
    ids=["NTKRoPE", "YaRN"],
)
def test_a_cache_knows_the_length_of_the_whole(encoding):
    layer = attention(encoding)
    for length in (None, 6, 20):
        assert_cache_changes_nothing(layer, (2, 1, 3), length=length)
    short, long = (call_by_cache(layer, (2, 4), length=n) for n in (6, 20))
    assert differ(short, long)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_the_index_in_the_cache_may_be_a_tensor(jit_compile):
    layer = attention(RelativeEncoding())
    full = layer(X, X, use_causal_mask=True)

    @tf.function(jit_compile=jit_compile)
    def step(token, cache, index):
        return layer(
            *(token, token),
            cache=cache,
            cache_update_index=index,
            use_causal_mask=True,
        )

    cache = layer.make_cache(2, TOKENS)
    for index in range(TOKENS):
        token = X[:, index : index + 1]
        output, cache = step(token, cache, tf.constant(index))
        np.testing.assert_allclose(output[:, 0], full[:, index], atol=1e-5)


@pytest.mark.parametrize("encoding", [None, RoPE, ALiBi, RelativeEncoding])
def test_another_sequence_is_cached_once(encoding):
    layer = attention(encoding and encoding())
    others = {
        "key_positions": np.arange(3, 12),
        "value_mask": np.arange(9) < np.array([[7], [9]]),
    }
    full = layer(X, OTHERS, positions=OWN, **others)
    output, filled = layer(
        *(X[:, :2], OTHERS),
        positions=OWN[:, :2],
        cache=layer.make_cache(2, 9),
        cache_update_index=0,
        **others,
    )
    np.testing.assert_allclose(output, full[:, :2], atol=1e-5)
    rest = X[:, 2:]
    for ignored in (rest, OTHERS, 0 * OTHERS[:, :1]):
        output, cache = layer(
            rest, ignored, positions=OWN[:, 2:], cache=filled, **others
        )
        np.testing.assert_allclose(output, full[:, 2:], atol=1e-5)
        assert not differ(cache, filled)


def call_with_cache(layer, inputs=X, value=None, slots=9, index=0, **options):
    layer.build(X.shape, X.shape)
    return layer(
        inputs,
        inputs if value is None else value,
        cache=layer.make_cache(2, slots),
        cache_update_index=index,
        **options,
    )


ONE, TWO = X[:, :1], X[:, :2]
WRONG_CACHES = [
    *(
        (attention(encoding()), {"inputs": ONE, "index": index}, "draws anew")
        for encoding in (RandomizedRoPE, RandomizedALiBi)
        for index in (0, 2)
    ),
    (attention(ALiBi()), {"positions": SHARED}, "pass `key_positions`"),
    (attention(RoPE()), {"value": OTHERS}, "pass their `positions`"),
    (attention(RoPE()), {"index": None}, "pass their `positions`"),
    (
        attention(),
        {"inputs": TWO, "slots": TOKENS, "index": TOKENS - 1},
        f"2 new tokens .* cache of {TOKENS}",
    ),
    (
        attention(),
        {"inputs": TWO, "value_mask": np.ones((2, 2), bool)},
        "got one of 2: pass `value_mask`",
    ),
]


@pytest.mark.parametrize(("layer", "options", "message"), WRONG_CACHES)
def test_what_does_not_fit_a_cache_is_refused(layer, options, message):
    with pytest.raises(ValueError, match=message):
        call_with_cache(layer, **options)


def count_draws(layer, monkeypatch):
    draws = []
    sample = layer.encoding.find_positions

    def counted(*args, **kwargs):
        draws.append(sample(*args, **kwargs))
        return draws[-1]

    monkeypatch.setattr(layer.encoding, "find_positions", counted)
    return draws


def wrap(layer):
    """A functional model."""
    inputs = keras.Input((6, 16))
    return keras.Model(inputs, layer(inputs, inputs))


SELF = {
    "arrays": lambda layer, x: layer(x, x),
    "another value": lambda layer, x: layer(x, x + 0, key=x),
    "variables": lambda layer, x: layer(*[keras.Variable(x)] * 2),
    "a graph": lambda layer, x: tf.function(lambda x: layer(x, x))(x),
    "a functional model": lambda layer, x: wrap(layer)(x),
    "without state": lambda layer, x: layer.stateless_call(
        layer.trainable_variables,
        layer.non_trainable_variables,
        *[tf.constant(x)] * 2,
    )[0],
    "said by the caller": lambda layer, x: layer(x, x + 0, self_attention=True),
}


@pytest.mark.parametrize("case", SELF)
def test_self_attention_draws_one_set_of_positions(case, monkeypatch):
    layer = attention(RandomizedRoPE(seed=1))
    x = np.array(X)
    layer(x, x, self_attention=True)
    draws = count_draws(layer, monkeypatch)
    SELF[case](layer, x)
    assert len(draws) == 1


APART = {
    "of equal numbers": lambda layer: layer(X, X + 0),
    "with positions of the queries": lambda layer: layer(
        X, OTHERS, positions=np.arange(6)
    ),
    "with positions of the keys": lambda layer: layer(
        X, OTHERS, key_positions=np.arange(9)
    ),
    "of symbols": lambda layer: layer(
        keras.Input((6, 16)), keras.Input((6, 16))
    ),
}


@pytest.mark.parametrize("case", APART)
def test_positions_are_never_drawn_apart(case):
    message = "apart.*one tensor as query and value.*`key_positions`"
    with pytest.raises(ValueError, match=message):
        APART[case](attention(RandomizedRoPE()))


def construct(**arguments):
    return MultiHeadAttention(**{"num_heads": 2, "key_dim": 4, **arguments})


WRONG = [
    (lambda: construct(num_heads=0), "num_heads .* got 0"),
    (lambda: construct(key_dim=1.5), "key_dim .* got 1.5"),
    (
        lambda: construct(encoding=SinusoidalEncoding()),
        "SinusoidalEncoding is added to the embeddings",
    ),
    (
        lambda: construct(num_heads=4, num_key_value_heads=3),
        "num_key_value_heads=3 does not divide num_heads=4",
    ),
    (lambda: construct(chunk_size="all"), "chunk_size must .* got 'all'"),
    (lambda: attention()(X), "value is missing"),
    (lambda: attention()(None, X), "query must be a tensor"),
    (
        lambda: build(attention())(X, X[..., :3]),
        "value has width 3, but this",
    ),
    (
        lambda: attention()(X, X[:, :0]),
        "value must have at least one token",
    ),
    (
        lambda: attention()(OTHERS, X, use_causal_mask=True),
        "use_causal_mask needs at least as many keys.*9 queries and 6",
    ),
    (
        lambda: attention()(X, X, cache_update_index=0),
        "cache_update_index is given without a cache",
    ),
]


def build(layer):
    layer.build(X.shape, X.shape)
    return layer


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_wrong_arguments_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()
