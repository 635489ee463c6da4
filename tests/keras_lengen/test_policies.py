"""Encodings, attentions and models under every dtype policy.

What is computed, on TensorFlow and on JAX, is in `policy_outputs.py`.
"""

import functools

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_lengen.layers import ENCODINGS, RandomizedPositions
from keras_lengen.layers.drawing import Dropout
from tests.keras_lengen import policy_outputs
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models import small
from tests.keras_lengen.policy_outputs import (
    CASES,
    FEW,
    POLICIES,
    PURE,
    as_array,
    globally,
    outputs,
    standard_dtype,
)
from tests.products import product
from tests.shell import run_on_jax

every_policy = pytest.mark.parametrize("policy", POLICIES)


def cases_and(policies, quick):
    """All cases, each with policies that are compared with one float32.

    Args:
        policies: Names of policies.
        quick: Those of them that are not slow where a case is not one of few.
    """
    rest = [policy for policy in policies if policy not in quick]
    for case in CASES:
        if case in FEW:
            yield case, policies
            continue
        if quick:
            yield case, quick
        yield pytest.param(case, rest, marks=pytest.mark.slow)


def in_fewest(case, *policies):
    """Whether the default run tests it."""
    return case in ("SinusoidalEncoding", "FIRE")


def compute_dtype(policy):
    return keras.DTypePolicy(policy).compute_dtype


def tolerance(policy):
    """Relative to results, or to 1 where they are smaller.

    One rounding moves a number by half an epsilon at most. Measured results
    are off by up to 2.6 epsilons, and by 3.5 where `p` of PowerKERPLE, itself
    half an epsilon off, is multiplied by the logarithm of the distance 1000.
    A position rounded to bfloat16 would move them by a hundred.
    """
    # In float64, positions, biases, scores and logits are float32.
    return 4 * max(
        float(ml_dtypes.finfo(dtype).eps)
        for dtype in (compute_dtype(policy), "float32")
    )


def promised_dtype(case, name, policy):
    if name.startswith("model"):
        return "float32"
    if name.startswith("attention"):
        return compute_dtype(policy)
    bias = CASES[case]().stage == "bias"
    return "float32" if bias else compute_dtype(policy)


def assert_near(result, exact, policy):
    assert np.isfinite(result).all()
    np.testing.assert_allclose(
        result, exact, rtol=tolerance(policy), atol=tolerance(policy)
    )


def assert_promises(case, arrays):
    """Asserts values and dtypes of all that `outputs` returns."""
    policies = {name.split("/")[0] for name in arrays}
    names = {name.split("/")[1] for name in arrays}
    assert policies > {"float32"}
    for policy in policies:
        for name in names:
            assert_near(
                arrays[f"{policy}/{name}"], arrays[f"float32/{name}"], policy
            )
            dtypes = set(arrays[f"{policy}/{name}/dtypes"].tolist())
            assert dtypes == {promised_dtype(case, name, policy)}, name


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("extent", ["", "everything"])
def test_jax_keeps_the_promises(tmp_path, extent):
    pytest.importorskip("jax")
    path = tmp_path / "outputs.npz"
    run_on_jax(
        *(policy_outputs.__name__, path, *([extent] if extent else [])),
        # Without it JAX computes in float32 what should be float64.
        JAX_ENABLE_X64="1",
        # Most of the time is that of compilations.
        JAX_DISABLE_MOST_OPTIMIZATIONS="1",
    )
    groups = {}
    for name, array in np.load(path).items():
        kind, case, rest = name.split("/", 2)
        groups.setdefault((kind, case), {})[rest] = array
    cases = CASES if extent else FEW
    for kind, of_kind in (("layers", CASES), ("model", cases)):
        for case in of_kind:
            assert_promises(case, groups.pop((kind, case)))
    for variant in samplers.ROWS:
        assert_same_draws(groups.pop(("positions", variant)))
    for case in FEW:
        arrays = groups.pop(("global", case))
        for name in {name.split("/")[0] for name in arrays}:
            assert set(arrays[f"{name}/dtypes"].tolist()) == {
                promised_dtype(case, name, "bfloat16")
            }
            np.testing.assert_array_equal(
                arrays[f"{name}/found"], arrays[f"{name}/expected"]
            )
    assert set(groups) == {("training", case) for case in cases}
    for changes in groups.values():
        for name, change in changes.items():
            assert np.isfinite(change).all(), name
        assert any(map(np.any, changes.values()))


def test_every_encoding_is_a_case():
    assert set(ENCODINGS) <= set(CASES)


@pytest.mark.parametrize(
    ("case", "policies"),
    product(cases_and(POLICIES, quick=PURE), keep=in_fewest),
    ids=str,
)
def test_an_encoding_by_itself_and_in_attention(case, policies):
    make = functools.partial(policy_outputs.layers, case)
    assert_promises(case, outputs(make, policies))


@pytest.mark.parametrize(
    ("case", "policies"),
    product(cases_and(POLICIES, quick=("bfloat16",)), keep=in_fewest),
    ids=str,
)
def test_a_model(case, policies):
    make = functools.partial(policy_outputs.model, case)
    assert_promises(case, outputs(make, policies))


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        # One product for queries, keys and values.
        (policy_outputs.layers, {"use_bias": False, "num_key_value_heads": 1}),
        (policy_outputs.layers, {"chunk_size": 4}),
        (
            policy_outputs.model,
            {
                "normalization": "pre",
                "rms_norm": True,
                "gated_feedforward": True,
                "use_bias": False,
                "tie_embeddings": True,
                "output_size": small.VOCABULARY_SIZE,
            },
        ),
    ],
    ids=["layers", "blocks", "model"],
)
@pytest.mark.parametrize(
    "case", product(["RoPE", "FIRE", "GeometricAttention"], keep=["FIRE"])
)
def test_other_programs(case, make, changes):
    make = functools.partial(make, case, **changes)
    assert_promises(case, outputs(make, PURE))


def test_a_model_of_two_sequences():
    def make(policy):
        model = small.make(
            "encoder_decoder",
            "RoPE",
            embedding_scale=48.0,
            dtype=policy,
            encoding_changes={"dtype": policy},
        )
        return model, small.inputs(model, small.token_ids())

    assert_promises("RoPE", outputs(make, PURE))


@pytest.mark.parametrize("case", product(encodings.FAMILIES, keep=in_fewest))
def test_an_encoding_without_the_policy_of_its_model(case):
    def make(policy):
        encoding = CASES[case](dtype="float32")
        return policy_outputs.model(case, policy, encoding=encoding)

    assert_promises(case, outputs(make, ["bfloat16", "float64"]))


@every_policy
def test_features_are_of_the_compute_dtype(policy):
    model, inputs = policy_outputs.model("RoPE", policy, output_size=None)
    ((dtypes, _),) = policy_outputs.results(model, inputs).values()
    assert set(dtypes) == {compute_dtype(policy)}


@pytest.mark.parametrize(
    ("case", "policy"),
    product(
        [("RoPE", "bfloat16"), ("FIRE", "float16"), ("FIRE", "float64")],
        keep=[("RoPE", "bfloat16")],
    ),
)
def test_generated_logits_are_those_of_the_full_pass(case, policy):
    encoding = CASES[case](dtype=policy)
    model = small.decoder(
        encoding,
        output_size=small.VOCABULARY_SIZE,
        embedding_scale=48.0,
        dtype=policy,
    )
    prompts = small.token_ids()
    with globally(policy):
        tokens, logits = model.generate(
            prompts, 4, return_logits=True, jit_compile=False
        )
    assert standard_dtype(logits) == "float32"
    full = model(np.concatenate([prompts, tokens], axis=1))
    assert_near(logits, full[:, prompts.shape[1] - 1 : -1], policy)


@pytest.mark.parametrize(
    ("case", "policies"),
    product(
        cases_and(("bfloat16", "float16"), quick=("bfloat16",)), keep=in_fewest
    ),
    ids=str,
)
def test_a_training_step_has_finite_gradients(case, policies):
    for policy in policies:
        take_a_training_step(case, policy)


def take_a_training_step(case, policy):
    model, inputs = policy_outputs.model(case, policy, dropout=0.1)
    inputs, labels = policy_outputs.batch(inputs)
    with tf.GradientTape() as tape:
        logits = model(inputs, training=True)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    weights = model.trainable_weights
    gradients = tape.gradient(loss, weights)
    for weight, gradient in zip(weights, gradients, strict=True):
        # The layer that makes the logits is float32, as they are.
        wanted = "float32" if "/head/" in weight.path else policy
        assert weight.dtype == wanted, weight.path
        gradient = as_array(tf.convert_to_tensor(gradient))
        assert np.isfinite(gradient).all(), weight.path
    keras.optimizers.SGD(0.1).apply(gradients, weights)
    assert np.isfinite(model(inputs)).all()


@pytest.mark.parametrize(
    "case",
    product(
        [
            pytest.param(case, marks=() if case in FEW else pytest.mark.slow)
            for case in CASES
        ],
        keep=in_fewest,
    ),
)
@pytest.mark.parametrize(
    ("policy", "make"),
    [
        ("bfloat16", policy_outputs.layers),
        ("float64", policy_outputs.layers),
        ("float16", policy_outputs.model),
        ("mixed_bfloat16", policy_outputs.model),
    ],
)
def test_a_global_policy_is_that_of_all_layers(case, policy, make):
    found, expected = policy_outputs.global_outputs(
        functools.partial(make, case), policy
    )
    assert set(found) == set(expected)
    for name, (dtypes, result) in found.items():
        assert set(dtypes) == {promised_dtype(case, name, policy)}
        np.testing.assert_array_equal(result, expected[name][1])


def assert_same_draws(arrays):
    for policy in PURE:
        for index in range(3):
            # With a floatx of bfloat16, Keras on JAX takes numbers without a
            # dtype for the widest floats.
            np.testing.assert_allclose(
                arrays[f"{policy}/{index}"],
                arrays[f"float32/{index}"],
                rtol=1e-6,
            )


@pytest.mark.parametrize(
    "variant", product(samplers.VARIANTS, keep=samplers.ROWS)
)
def test_positions_are_the_same_whatever_floatx(variant):
    assert_same_draws(policy_outputs.positions(variant))


@pytest.mark.parametrize("policy", ["bfloat16", "float16", "float64"])
def test_the_mean_of_randomized_positions_is_half_the_range(policy):
    # Of the largest of few random numbers many are equal, which prefers the
    # first ones: one token shows it best.
    sampler = samplers.make(
        "RandomizedPositions", max_position=2048, resample="example"
    )
    with globally(policy):
        draws = np.asarray(sampler(ops.zeros((4000, 1)), training=True))
    # Five standard deviations of the mean.
    error = 5 * 2048 / 12**0.5 / 4000**0.5
    assert abs(draws.mean() - 2047 / 2) < error


def test_tokens_of_long_sequences_are_counted_whatever_floatx():
    # Keras counts in 16 bits there where no dtype is given.
    tokens = 40_000
    with globally("float16"):
        sampler = RandomizedPositions(max_position=tokens)
        positions = sampler(
            ops.zeros((1, tokens)), lengths=np.array([35_000]), training=True
        )
    # Padding stands at the last position, where a token may stand, too.
    assert np.sum(np.asarray(positions) < tokens - 1) in (34_999, 35_000)


@pytest.mark.parametrize("rate", [0.01, 0.3])
@every_policy
def test_dropout_drops_the_given_share(policy, rate):
    inputs = np.random.default_rng(0).uniform(1, 2, (1000, 1000))
    with globally(policy):
        dropout = Dropout(rate, seed=1)
        outputs = dropout(inputs, training=True)
        assert standard_dtype(outputs) == compute_dtype(policy)
        outputs = as_array(outputs)
    error = 5 * (rate * (1 - rate) / outputs.size) ** 0.5
    assert abs(np.mean(outputs == 0) - rate) < error
    # A factor of the compute dtype would be off by up to half an epsilon.
    assert abs(outputs.mean() / inputs.mean() - 1) < error / (1 - rate) + 2e-4


@pytest.mark.parametrize("policy", ["bfloat16", "float64"])
def test_sampled_tokens_are_the_same_whatever_floatx(policy):
    model = small.decoder(
        encodings.make("RoPE"), output_size=small.VOCABULARY_SIZE
    )
    arguments = {"temperature": 1.0, "top_p": 0.9, "seed": 1}
    generate = functools.partial(
        model.generate, small.token_ids(), 5, jit_compile=False, **arguments
    )
    expected = generate()
    with globally(policy):
        np.testing.assert_array_equal(generate(), expected)
