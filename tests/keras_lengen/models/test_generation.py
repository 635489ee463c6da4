import collections

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.layers import (
    AxialEncoding,
    GeometricAttention,
    GridPositions,
    LearnedEncoding,
    NTKRoPE,
    RandomizedRoPE,
    RoPE,
)
from keras_lengen.models import EncoderDecoder, TransformerDecoder
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models.small import list_encodings_and_samplers
from tests.products import product

NEW_TOKENS = 4
VOCABULARY_SIZE = 9
RANDOM = np.random.default_rng(0)
PROMPTS = RANDOM.integers(1, VOCABULARY_SIZE, size=(3, 5)).astype("int32")
LENGTHS = np.array([5, 2, 4])
SHAPE = {
    "vocabulary_size": VOCABULARY_SIZE,
    "num_layers": 2,
    "num_heads": encodings.HEADS,
    "model_dim": encodings.MODEL_DIM,
    "feedforward_dim": 8,
}


@pytest.fixture
def eager():
    """Runs programs without compiling them, which here takes longest."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(params=product(["compiled", "eager"], keep=["eager"]))
def in_both_ways(request):
    """Compiles programs, or runs them without that as the default run does."""
    if request.param == "eager":
        request.getfixturevalue("eager")


def decoder(encoding=None, **changes):
    """A decoder whose next token depends on more than the last one."""
    model = TransformerDecoder(**{**SHAPE, "encoding": encoding, **changes})
    spread(model)
    return model


def spread(model):
    for weight in model.trainable_variables:
        if weight.path.split("/")[-1] == "embeddings":
            weight.assign(30 * weight)


def generated(model, inputs, **options):
    """New tokens and their logits, without the wait for XLA."""
    return model.generate(
        inputs, NEW_TOKENS, return_logits=True, jit_compile=False, **options
    )


def assert_full_pass(model, prompts, tokens, logits, **inputs):
    """Asserts that one pass over all tokens returns the logits of each."""
    whole = np.concatenate([prompts, tokens], axis=1)
    reset(model)
    expected = model({"token_ids": whole, **inputs})
    first = prompts.shape[1] - 1
    np.testing.assert_allclose(
        expected[:, first : first + NEW_TOKENS], logits, rtol=1e-5, atol=2e-5
    )
    np.testing.assert_array_equal(np.argmax(logits, axis=-1), tokens)


def reset(model):
    samplers.reset(model.encoding.sampler)


@pytest.mark.parametrize(
    ("variant", "sampler"),
    list_encodings_and_samplers("RoPE", "SinusoidalEncoding"),
    ids=str,
)
@pytest.mark.usefixtures("eager")
def test_cached_decoding_is_the_full_pass(variant, sampler):
    changes = {"sampler": samplers.make(sampler)} if sampler else {}
    model = decoder(encodings.make(variant, **changes))
    reset(model)
    tokens, logits = generated(model, {"token_ids": PROMPTS})
    assert_full_pass(model, PROMPTS, tokens, logits)


@pytest.mark.parametrize(
    "variant",
    product(encodings.ROWS, keep=["RandomizedRoPE"]),
)
@pytest.mark.usefixtures("eager")
def test_each_prompt_continues_as_it_does_alone(variant):
    encoding = encodings.make(variant)
    model = decoder(encoding)
    batched = {}
    reset(model)
    batched["right"] = generated(
        model, {"token_ids": PROMPTS, "lengths": LENGTHS}
    )
    left = np.arange(5) >= 5 - LENGTHS[:, None]
    ids = np.ones_like(PROMPTS)
    for example, length in enumerate(LENGTHS):
        ids[example, 5 - length :] = PROMPTS[example, :length]
    reset(model)
    batched["left"] = generated(model, {"token_ids": ids, "padding_mask": left})
    for example, length in enumerate(LENGTHS):
        # Samplers that draw for every example draw for the first one first.
        if example > 0 and getattr(encoding.sampler, "draws", False):
            continue
        reset(model)
        alone = PROMPTS[example : example + 1, :length]
        tokens, logits = generated(model, {"token_ids": alone})
        for batch_tokens, batch_logits in batched.values():
            np.testing.assert_array_equal(batch_tokens[example], tokens[0])
            np.testing.assert_allclose(
                batch_logits[example], logits[0], atol=2e-5
            )


@pytest.mark.usefixtures("in_both_ways")
def test_a_shared_draw_serves_prompts_of_all_lengths_as_alone():
    model = decoder(RandomizedRoPE(max_position=64, seed=1))
    reset(model)
    _, batched = generated(model, {"token_ids": PROMPTS, "lengths": LENGTHS})
    for example, length in enumerate(LENGTHS):
        reset(model)
        alone = PROMPTS[example : example + 1, :length]
        _, logits = generated(model, {"token_ids": alone})
        np.testing.assert_allclose(batched[example], logits[0], atol=2e-5)


@pytest.mark.parametrize(
    "changes",
    product(
        [
            {"draw": "layer"},
            {"num_key_value_heads": 1},
            {"normalization": "pre", "tie_embeddings": True},
            {"attention": GeometricAttention, "encoding": None},
            {"encoding": NTKRoPE(scaling_factor=2.0, original_length=4)},
            {
                "encoding": AxialEncoding(
                    row=RoPE(), column=RoPE(), sampler=GridPositions(width=3)
                )
            },
            {"chunk_size": 2},
            {"dtype": "mixed_bfloat16"},
        ],
        keep=lambda changes: (
            changes.keys() <= {"draw", "chunk_size", "num_key_value_heads"}
        ),
    ),
    ids=lambda changes: "-".join(changes),
)
@pytest.mark.usefixtures("in_both_ways")
def test_all_decoders_continue(changes):
    encoding = RandomizedRoPE(max_position=64, evaluation="even")
    model = decoder(**{"encoding": encoding, **changes})
    tokens, logits = generated(model, {"token_ids": PROMPTS})
    if "dtype" not in changes:
        assert_full_pass(model, PROMPTS, tokens, logits)
        return
    whole = np.concatenate([PROMPTS, tokens], axis=1)
    expected = model({"token_ids": whole})[:, 4 : 4 + NEW_TOKENS]
    np.testing.assert_allclose(expected, logits, atol=0.1)


@pytest.mark.usefixtures("in_both_ways")
def test_explicit_positions_are_those_of_prompts_and_new_tokens():
    model = decoder(RoPE())
    positions = np.array([3, 4, 9, 20, 21, 30, 31, 40, 50])
    inputs = {"token_ids": PROMPTS, "positions": positions}
    tokens, logits = generated(model, inputs)
    assert_full_pass(model, PROMPTS, tokens, logits, positions=positions)


@pytest.mark.usefixtures("in_both_ways")
def test_a_reference_length_is_heeded():
    model = decoder(NTKRoPE(scaling_factor=2.0, original_length=4))
    inputs = {"token_ids": PROMPTS, "reference_length": 100}
    tokens, logits = generated(model, inputs)
    assert_full_pass(model, PROMPTS, tokens, logits, reference_length=100)
    assert encodings_differ(logits, generated(model, {"token_ids": PROMPTS})[1])


def encodings_differ(one, other):
    return np.abs(np.asarray(one) - np.asarray(other)).max() > 1e-3


@pytest.mark.parametrize("cross_encoding", [None, RoPE()], ids=["no", "rope"])
@pytest.mark.usefixtures("in_both_ways")
def test_an_encoder_decoder_reads_its_source_once(cross_encoding):
    model = EncoderDecoder(
        **SHAPE,
        encoding=RandomizedRoPE(max_position=64, evaluation="even"),
        cross_encoding=cross_encoding,
    )
    spread(model)
    inputs = {
        "token_ids": PROMPTS,
        "lengths": LENGTHS,
        "target_ids": PROMPTS[:, :2],
    }
    tokens, logits = generated(model, inputs)
    whole = np.concatenate([PROMPTS[:, :2], tokens], axis=1)
    expected = model({**inputs, "target_ids": whole})
    np.testing.assert_allclose(
        expected[:, 1 : 1 + NEW_TOKENS], logits, atol=2e-5
    )
    streamed = np.stack([*model.stream(inputs, NEW_TOKENS)], axis=1)
    np.testing.assert_array_equal(streamed, tokens)


@pytest.fixture(scope="module")
def rope():
    """A decoder for tests that share its programs."""
    keras.utils.set_random_seed(0)
    return decoder(RoPE())


def test_a_stream_yields_what_is_generated(rope):
    inputs = {"token_ids": PROMPTS, "lengths": LENGTHS}
    tokens = rope.generate(inputs, NEW_TOKENS)
    streamed = [*rope.stream(inputs, NEW_TOKENS)]
    np.testing.assert_array_equal(np.stack(streamed, axis=1), tokens)
    assert tokens.dtype == streamed[0].dtype == np.int32


@pytest.mark.product
def test_compiled_is_not_compiled(rope):
    tokens, logits = rope.generate(
        {"token_ids": PROMPTS}, NEW_TOKENS, return_logits=True
    )
    same_tokens, same_logits = generated(rope, {"token_ids": PROMPTS})
    np.testing.assert_array_equal(tokens, same_tokens)
    np.testing.assert_allclose(logits, same_logits, atol=2e-5)


def test_programs_are_compiled_once_for_a_shape():
    model = decoder(RandomizedRoPE(max_position=64))
    for lengths in ([5, 5, 5], [1, 2, 3]):
        for temperature in (0.5, 1.0):
            model.generate(
                {"token_ids": PROMPTS, "lengths": np.array(lengths)},
                NEW_TOKENS,
                temperature=temperature,
                jit_compile=False,
            )
    (program,) = model.programs._programs.values()
    assert program.start.experimental_get_tracing_count() == 1
    assert program.advance.experimental_get_tracing_count() == 1


def test_new_weights_are_used():
    model = decoder(RoPE())
    before, _ = generated(model, {"token_ids": PROMPTS})
    for weight in model.trainable_variables:
        weight.assign(RANDOM.normal(size=weight.shape))
    after, logits = generated(model, {"token_ids": PROMPTS})
    assert_full_pass(model, PROMPTS, after, logits)
    assert (before != after).any()


def test_a_sequence_ends_at_the_end_token(rope):
    free = rope.generate({"token_ids": PROMPTS}, NEW_TOKENS)
    end_token = int(free[0, 1])
    ended = rope.generate(
        {"token_ids": PROMPTS}, NEW_TOKENS, end_token=end_token
    )
    for row, full in zip(ended, free, strict=True):
        hits = np.flatnonzero(full == end_token)
        length = hits[0] if len(hits) else NEW_TOKENS
        np.testing.assert_array_equal(row[:length], full[:length])
        np.testing.assert_array_equal(row[length:], end_token)


@pytest.mark.usefixtures("in_both_ways")
def test_a_stream_ends_with_its_last_sequence():
    model = decoder(RoPE())
    one = {"token_ids": PROMPTS[:1]}
    first, second = model.generate(one, 2)[0]
    streamed = [*model.stream(one, 50, end_token=int(second))]
    assert len(streamed) == (1 if first == second else 2)


def chances(model, inputs):
    logits = np.asarray(model(inputs))[:, -1].astype("float64")
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def draws(model, number=4000, **options):
    """How often each token follows the first prompt, of many draws."""
    inputs = {"token_ids": np.repeat(PROMPTS[:1], number, axis=0)}
    tokens = model.generate(inputs, 1, seed=3, **options)[:, 0]
    return np.bincount(tokens, minlength=VOCABULARY_SIZE)


@pytest.fixture(scope="module")
def flat_model():
    """A decoder that finds every token likely."""
    keras.utils.set_random_seed(5)
    model = decoder(RoPE())
    model.head.kernel.assign(0.3 * model.head.kernel)
    return model


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@pytest.mark.usefixtures("in_both_ways")
def test_tokens_are_sampled_by_their_probability(flat_model, temperature):
    expected = chances(flat_model, PROMPTS[:1])[0] ** (1 / temperature)
    expected *= 4000 / expected.sum()
    found = draws(flat_model, temperature=temperature)
    chi_square = ((found - expected) ** 2 / expected).sum()
    # 8 degrees of freedom: above 35 once in 37,000 times.
    assert chi_square < 35


@pytest.mark.parametrize("others", [{}, {"top_k": 3}, {"top_p": 0.9}])
@pytest.mark.usefixtures("eager")
def test_the_smallest_temperature_chooses_the_likeliest(others):
    model = decoder(RoPE())
    model.head.kernel.assign(1000 * model.head.kernel)
    inputs = {"token_ids": PROMPTS}
    tokens, _ = generated(model, inputs, temperature=1.2e-38, **others)
    np.testing.assert_array_equal(tokens, generated(model, inputs)[0])


@pytest.mark.usefixtures("in_both_ways")
def test_the_largest_temperatures_find_all_tokens_equally_likely(flat_model):
    for temperature in (10**19, 3e38):
        found = draws(flat_model, temperature=temperature)
        expected = 4000 / VOCABULARY_SIZE
        assert ((found - expected) ** 2 / expected).sum() < 35


@pytest.mark.usefixtures("in_both_ways")
def test_top_k_leaves_the_likeliest(flat_model):
    order = np.argsort(-chances(flat_model, PROMPTS[:1])[0])
    found = draws(flat_model, temperature=1.0, top_k=3)
    assert set(np.flatnonzero(found)) == set(order[:3])


@pytest.mark.parametrize("top_p", [0.5, 1.0])
@pytest.mark.usefixtures("in_both_ways")
def test_top_p_leaves_the_smallest_likely_set(flat_model, top_p):
    probabilities = chances(flat_model, PROMPTS[:1])[0]
    order = np.argsort(-probabilities)
    needed = np.searchsorted(np.cumsum(probabilities[order]), top_p - 1e-7) + 1
    found = draws(flat_model, temperature=1.0, top_p=top_p)
    assert set(np.flatnonzero(found)) == set(order[:needed])


@pytest.fixture
def failing_model():
    """A decoder that chooses token 5, and then finds no numbers."""
    model = decoder(RoPE())
    embeddings = ops.convert_to_numpy(model.embedding.embeddings).copy()
    embeddings[5] = np.nan
    model.embedding.embeddings.assign(embeddings)
    model.head.kernel.assign(ops.zeros_like(model.head.kernel))
    model.head.bias.assign(np.eye(VOCABULARY_SIZE)[5] * 30)
    return model


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"repetition_penalty": 1.5, "return_logits": True},
        {"temperature": 1.0, "top_k": 3, "top_p": 0.9},
        {"num_beams": 2},
    ],
    ids=lambda options: "-".join(options),
)
@pytest.mark.usefixtures("in_both_ways")
def test_logits_that_are_no_numbers_raise(failing_model, options):
    prompts = np.ones((2, 3), "int32")
    message = "new token 1 of row 0 .*: check the weights"
    with pytest.raises(ValueError, match=message):
        failing_model.generate(prompts, 3, **options)
    # Nothing reads the end of a row.
    ended = {**options, "return_logits": False, "end_token": 5}
    found = failing_model.generate(prompts, 3, **ended)
    np.testing.assert_array_equal(found, np.full((2, 3), 5))
    prompts[1, 2] = 5
    with pytest.raises(ValueError, match="new token 0 of row 1 "):
        failing_model.generate(prompts, 3, **options)


@pytest.mark.usefixtures("eager")
def test_a_stream_ends_where_logits_are_no_numbers(failing_model):
    stream = failing_model.stream(np.ones((2, 3), "int32"), 3)
    np.testing.assert_array_equal(next(stream), [5, 5])
    with pytest.raises(ValueError, match="new token 1 of row 0 "):
        next(stream)


def test_a_seed_repeats_the_draw(flat_model):
    def tokens(seed):
        return flat_model.generate(PROMPTS, 20, temperature=1.0, seed=seed)

    np.testing.assert_array_equal(tokens(1), tokens(1))
    assert (tokens(1) != tokens(2)).any()
    assert (tokens(None) != tokens(None)).any()


@pytest.mark.usefixtures("in_both_ways")
def test_examples_and_steps_draw_apart(flat_model):
    tokens = flat_model.generate(
        np.repeat(PROMPTS[:1], 50, axis=0), 20, temperature=3.0, seed=1
    )
    assert len({tuple(row) for row in tokens}) == 50
    assert all(len(collections.Counter(row)) > 1 for row in tokens)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ({}, {"max_new_tokens": 0}, "max_new_tokens .* positive .* got 0"),
        ({}, {"temperature": -1.0}, "temperature .* at least 0; got -1.0"),
        ({}, {"top_k": 10}, "top_k .* from 1 to 9, or None; got 10"),
        ({}, {"top_k": 3}, "top_k=3 .* temperature=0: .* such as 1.0"),
        ({}, {"top_p": 0.9}, "top_p=0.9 .* temperature=0: .* such as 1.0"),
        ({}, {"top_p": 0}, "top_p .* above 0 and at most 1, or None; got 0"),
        (
            {"lengths": np.array([5, 0, 2])},
            {},
            "lengths .* prompt 1 without a token",
        ),
        ({"token_ids": PROMPTS[:, :0]}, {}, "token_ids must have at least one"),
        (
            {"positions": np.arange(5)},
            {},
            "positions .* one number for each token: got 5 for 9 tokens",
        ),
        ({"length": 3}, {}, "token_ids"),
    ],
)
def test_wrong_arguments_raise(inputs, options, message):
    options = {"max_new_tokens": NEW_TOKENS, **options}
    with pytest.raises(ValueError, match=message):
        decoder().generate({"token_ids": PROMPTS, **inputs}, **options)


@pytest.mark.parametrize(
    "encoding",
    [LearnedEncoding(max_position=8), RandomizedRoPE(max_position=8)],
    ids=["table", "range"],
)
@pytest.mark.usefixtures("in_both_ways")
def test_prompts_and_new_tokens_need_a_position_each(encoding):
    model = decoder(encoding)
    model.generate({"token_ids": PROMPTS}, 3, jit_compile=False)
    with pytest.raises(ValueError, match="max_position"):
        model.generate({"token_ids": PROMPTS}, 4, jit_compile=False)


@pytest.mark.usefixtures("in_both_ways")
def test_outputs_must_be_inputs_to_go_on():
    model = decoder(output_size=VOCABULARY_SIZE + 1)
    assert model.generate(PROMPTS, 1, jit_compile=False).shape == (3, 1)
    with pytest.raises(ValueError, match="output_size=10 is larger than"):
        model.generate(PROMPTS, 2)


def test_a_stream_checks_before_it_is_read():
    with pytest.raises(ValueError, match="max_new_tokens"):
        decoder().stream(PROMPTS, 0)


@pytest.mark.usefixtures("in_both_ways")
def test_bare_token_ids_are_prompts(rope):
    np.testing.assert_array_equal(
        rope.generate(ops.convert_to_tensor(PROMPTS), 2, jit_compile=False),
        rope.generate({"token_ids": PROMPTS}, 2, jit_compile=False),
    )
