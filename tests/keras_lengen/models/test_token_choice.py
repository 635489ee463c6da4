"""The arithmetic of choosing a token, against sorting in plain NumPy."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from keras import ops

from keras_lengen.models.programs import compile_function
from keras_lengen.models.token_choice import (
    RANDOM_NUMBERS,
    add_seen,
    are_valid,
    find_largest,
    find_seen,
    penalize,
    sample_tokens,
)
from tests.keras_lengen.models import decoding
from tests.keras_lengen.models.small import MODELS, VOCABULARY_SIZE, inputs

INF = np.inf
DRAWS = 400
# Few numbers, so that ties occur; forbidden tokens; and extremes.
NUMBERS = st.sampled_from([0.0, 0.5, 1.0, -1.0, -64.0, -INF, 3.4e38])
LOGITS = arrays("float32", st.integers(1, 9), elements=NUMBERS).filter(
    lambda row: not np.isneginf(row.max())
)


def choose(logits, draws=DRAWS, program=sample_tokens, **options):
    """Tokens for evenly spaced numbers instead of random ones."""
    numbers = np.linspace(0, RANDOM_NUMBERS - 1, draws).astype("int32")
    logits = np.tile(np.float32(logits), (draws, 1))
    options = {"temperature": 1.0, "top_k": None, "top_p": None, **options}
    tokens = program(*map(ops.convert_to_tensor, (logits, numbers)), **options)
    return ops.convert_to_numpy(tokens)


@hypothesis.given(
    LOGITS,
    # XLA multiplies by the reciprocal, which is 0 above 8.5e37.
    st.sampled_from([1.2e-38, 0.3, 1.0, 7.0, 8e37]),
    st.none() | st.integers(1, 9),
    st.none() | st.sampled_from([1e-9, 0.3, 0.5, 0.75, 0.95]),
)
@hypothesis.example(np.zeros(9, "float32"), 1.0, 4, None)
@hypothesis.example(np.zeros(9, "float32"), 1.0, None, 0.3)
@hypothesis.example(np.float32([0, 2, 1, 2, 2]), 1.0, 2, None)
@hypothesis.example(np.float32([-INF, 2, -INF, 2]), 3e38, 3, 0.95)
@hypothesis.example(np.float32([-1, 2, 1.5]), 1.2e-38, None, None)
@hypothesis.example(np.log(np.float32([0.1, 0.4, 0.2, 0.3])), 1.0, 3, 0.75)
def test_tokens_have_their_share_of_the_numbers(
    logits, temperature, top_k, top_p
):
    """Among equal tokens, the first ones are kept."""
    top_k = top_k and min(top_k, len(logits))
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    with np.errstate(all="ignore"):
        expected = decoding.find_shares(logits, **options)
    counts = np.bincount(choose(logits, **options), minlength=len(logits))
    np.testing.assert_allclose(counts / DRAWS, expected, atol=1.01 / DRAWS)
    assert not counts[np.isneginf(logits)].any()


@pytest.mark.parametrize("shift", [0, -64])
def test_rounding_adds_no_token(shift):
    logits = shift + np.log([0.5, 0.3, 0.1, 0.1])
    assert {*choose(logits, top_p=0.8)} == {0, 1}
    # The last number chooses the last token.
    assert choose(np.full(20_000, shift), 2, top_p=0.3)[-1] == 5999
    many = shift + np.log([0.5, *np.full(60_000, 0.5 / 60_000)])
    assert choose(many, 2, top_p=0.5)[-1] == 0
    assert choose(many, 2, top_p=0.75)[-1] == 30_000


@pytest.mark.product
@pytest.mark.parametrize("options", [{"top_k": 5000}, {"top_p": 0.5}], ids=str)
def test_compiled_programs_choose_no_other_token(options):
    logits = 3 * np.random.default_rng(0).normal(size=50_000)

    def program(logits, numbers, **options):
        return compile_function(
            lambda *tensors: sample_tokens(*tensors, **options), [], True
        )(logits, numbers)

    found = choose(logits, 64, program, **options)
    shares = decoding.find_shares(logits, **options)
    ranks = np.argsort(np.argsort(-logits))
    last = (shares > 0).sum() - 1
    assert ranks[found].max() <= last
    assert ranks[found].max() == last or "top_k" in options


@hypothesis.given(
    arrays("float32", (3, 7), elements=NUMBERS), st.integers(1, 7)
)
def test_the_largest_are_the_first_of_equal_ones(scores, count):
    found = find_largest(ops.convert_to_tensor(scores), count)
    largest, indices = map(ops.convert_to_numpy, found)
    expected = np.argsort(-scores, axis=-1, kind="stable")[:, :count]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(
        largest, np.take_along_axis(scores, expected, axis=-1)
    )


@pytest.mark.parametrize(
    ("row", "valid"),
    [
        ([0, 1], True),
        ([-INF, 1], True),
        ([np.nan, 1], False),
        ([1, np.nan], False),
        ([-INF, np.nan], False),
        ([INF, 1], False),
        ([-INF, -INF], False),
    ],
)
def test_valid_logits_have_a_token_to_choose(row, valid):
    found = are_valid(ops.convert_to_tensor(np.float32([row, [0, 0]])))
    assert [*map(bool, found)] == [valid, True]


@hypothesis.given(
    arrays("float32", 6, elements=NUMBERS),
    st.sets(st.integers(0, 5)),
    st.sampled_from([0.25, 1.0, 4.0, 1e37]),
)
def test_a_penalty_is_that_of_ctrl(logits, seen, penalty):
    mask = np.isin(np.arange(6), [*seen])[None]
    tensors = map(ops.convert_to_tensor, (logits[None], mask, penalty))
    found = ops.convert_to_numpy(penalize(*tensors))[0]
    expected = decoding.penalize(logits, seen, penalty)
    # What overflows is unlikely, but not forbidden as -inf is.
    kept = np.isneginf(logits) | ~mask[0]
    expected = np.where(kept, expected, np.clip(expected, -1e30, 1e30))
    # Some processors make numbers below 1e-37 zeros.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-37)


PROMPTS = np.array([[1, 2, 3, 7], [6, 5, 1, 2], [2, 7, 7, 1]], "int32")


def test_seen_are_the_real_tokens():
    mask = np.arange(4) < np.array([[4], [2], [3]])
    for real, outputs, expected in (
        # Of nine tokens, the outputs are only the first seven.
        (mask, 7, [{1, 2, 3}, {5, 6}, {2}]),
        (None, 9, [{1, 2, 3, 7}, {1, 2, 5, 6}, {1, 2, 7}]),
    ):
        seen = find_seen(PROMPTS, real, outputs)
        assert [{*np.flatnonzero(row)} for row in seen] == expected
        more = add_seen(ops.convert_to_tensor(seen), np.int32([0, 5, 2]))
        found = [{*np.flatnonzero(row)} for row in ops.convert_to_numpy(more)]
        added = zip(expected, [0, 5, 2], strict=True)
        assert found == [row | {token} for row, token in added]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_of_tied_embeddings_are_float32(name, dtype):
    model = MODELS[name](
        output_size=VOCABULARY_SIZE, tie_embeddings=True, dtype=dtype
    )
    logits = model(inputs(model, np.arange(VOCABULARY_SIZE)[None]))
    rounded = ops.cast(ops.cast(logits, dtype), "float32")
    logits = ops.convert_to_numpy(logits)
    assert logits.dtype == "float32"
    assert (ops.convert_to_numpy(rounded) == logits).mean() < 0.2
