"""What a call of attention takes, draws, writes to a cache and refuses."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.conformance import attentions
from keras_lengen.conformance.requirements import restart
from keras_lengen.layers import (
    ALiBi,
    MultiHeadAttention,
    NoPE,
    NTKRoPE,
    RandomizedALiBi,
    RandomizedPositions,
    RandomizedRoPE,
    RelativeEncoding,
    RoPE,
    SinusoidalEncoding,
)
from tests.covering import cover
from tests.keras_lengen.layers.arguments import differ
from tests.keras_lengen.layers.attention import oracle
from tests.keras_lengen.layers.encodings.table import make_axial
from tests.refusals import refuses

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


@pytest.mark.parametrize(
    ("encoding", "options", "causal", "heads_of_mask"),
    cover(
        [NoPE, RoPE, ALiBi, RelativeEncoding],
        [
            {},
            {"num_key_value_heads": 1, "value_dim": 3},
            {"use_sinks": True, "sliding_window": 4},
            {"score_factor": "log_length"},
            {"chunk_size": 4},
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
    ("encoding", "sampler"),
    [
        (RoPE, {}),
        (ALiBi, {"resample": "example"}),
        (RelativeEncoding, {"evaluation": "even"}),
    ],
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
        restart(layer.encoding.sampler)
        states = inputs if masks else np.asarray(X)
        outputs.append(np.asarray(layer(states, states, **masks)))
    found = np.take_along_axis(outputs[0], places[..., None], axis=1)
    np.testing.assert_allclose(found, outputs[1], atol=1e-5)
    restart(layer.encoding.sampler)
    once = layer(inputs, inputs, value_mask=mask)
    np.testing.assert_array_equal(once, outputs[0])


@pytest.mark.parametrize(
    "encoding",
    [
        make_axial(RoPE),
        make_axial(ALiBi),
        NTKRoPE(scaling_factor=4.0, original_length=2),
    ],
)
def test_a_cache_numbers_tokens_like_the_full_pass(encoding):
    attentions._check_cache(attention(encoding))


@pytest.mark.parametrize("encoding", [RoPE, ALiBi])
def test_another_sequence_is_cached_once(encoding):
    layer = attention(encoding())
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


@refuses(
    (attention(RandomizedALiBi()), {}, "draws anew"),
    (attention(ALiBi()), {"positions": SHARED}, "pass `key_positions`"),
    (attention(RoPE()), {"value": OTHERS}, "pass their `positions`"),
    (
        attention(),
        {"value_mask": np.ones((2, 6), bool)},
        "got one of 6: pass `value_mask`",
    ),
)
def test_what_does_not_fit_a_cache_is_refused(layer, options):
    layer.build(X.shape, X.shape)
    call = {"value": X, "cache_update_index": 0, **options}
    layer(X, cache=layer.make_cache(2, 9), **call)


def wrap(layer, x):
    inputs = keras.Input((6, 16))
    return keras.Model(inputs, layer(inputs, inputs))(x)


SELF = {
    "another value": lambda layer, x: layer(x, x + 0, key=x),
    "variables": lambda layer, x: layer(*[keras.Variable(x)] * 2),
    "a functional model": wrap,
    "without state": lambda layer, x: layer.stateless_call(
        layer.trainable_variables,
        layer.non_trainable_variables,
        *[tf.constant(x)] * 2,
    )[0],
    "said by the caller": lambda layer, x: layer(x, x + 0, self_attention=True),
}


@pytest.mark.parametrize("case", SELF)
def test_self_attention_draws_one_set_of_positions(case):
    layer, x = attention(RandomizedRoPE()), np.array(X)
    layer.build(x.shape, x.shape)
    outputs = []
    for call in (lambda layer, x: layer(x, x), SELF[case]):
        restart(layer.encoding.sampler)
        outputs.append(call(layer, x))
    np.testing.assert_allclose(*outputs, atol=1e-6)


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


@refuses(
    (
        lambda: attention(SinusoidalEncoding()),
        "SinusoidalEncoding is added to the embeddings",
    ),
    (
        lambda: attention(num_key_value_heads=3),
        "num_key_value_heads=3 does not divide num_heads=2",
    ),
    (lambda: attention()(X), "value is missing"),
    (lambda: attention().make_cache(0, 9), "batch_size must be .* got 0"),
    (lambda: attention(fused=True, use_entmax=True), "fused=True .*Entmax"),
    (lambda: attention()(np.full(9, "a"), X), "query must be .* got str32 of"),
    (
        lambda: attention()(X[0], X, self_attention=True),
        r"query must have shape \(B, T, M\); got \(6, 16\)",
    ),
)
def test_wrong_arguments_raise(call):
    call()
