"""Compares fused attention with the same formulas without kernels, on JAX.

KERAS_BACKEND=jax \
    python -m tests.keras_lengen.layers.attention.fused_outputs errors.json
"""

import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import keras
import numpy as np

from keras_lengen import layers
from keras_lengen.layers import (
    LengthFactor,
    LogKERPLE,
    MultiHeadAttention,
    PoPE,
    RandomizedALiBi,
)
from keras_lengen.layers.attention import fused

ENCODINGS = {
    "ALiBi": {},
    "HardALiBi": {},
    "NAPE": {},
    "ClippedBias": {"max_distance": 3},
    "PowerKERPLE": {},
    "LogKERPLE": {"asymmetry": 0.5},
    "BAM": {},
    "T5Bias": {"num_buckets": 8},
    "FIRE": {"hidden_dim": 5},
    "Sandwich": {"dimension": 6},
}
"""Arguments of every encoding whose bias is a function of two positions."""

CAUSAL = {"encoding": LogKERPLE, "use_causal_mask": True}
CASES = {
    "polar": {"encoding": PoPE, "num_key_value_heads": 2},
    "factors and shared heads": {
        **CAUSAL,
        "score_factor": "head",
        "num_key_value_heads": 2,
        "scale_scores": False,
    },
    "window, cap and sinks": {
        **CAUSAL,
        "sliding_window": 4,
        "sink_tokens": 2,
        "logit_soft_cap": 1.5,
        "use_sinks": True,
    },
    "window in both directions": {
        "sliding_window": 3,
        "sink_tokens": 2,
        "score_factor": "log_length",
    },
    "adaptive": {**CAUSAL, "score_factor": "adaptive"},
    "trained length": {**CAUSAL, "train_length": 4},
    "floor": {**CAUSAL, "score_factor": LengthFactor(floor=4)},
    "odd widths": {"num_heads": 3, "key_dim": 8, "value_dim": 5},
    "wide heads": {
        **CAUSAL,
        "num_heads": 8,
        "key_dim": 64,
        "value_dim": 32,
        "num_key_value_heads": 2,
    },
    "more keys": {**CAUSAL, "keys": 50},
    "several blocks": {
        **CAUSAL,
        "tokens": 1100,
        "keys": 1100,
        "sliding_window": 300,
        "sink_tokens": 3,
    },
    "several blocks of more keys": {
        "encoding": LogKERPLE,
        "tokens": 600,
        "keys": 700,
        "sliding_window": 100,
        "logit_soft_cap": 2.0,
    },
}
"""Arguments of layers, and of `find_layer_error`."""


def multiply(features):
    if features is None:
        return {}
    return {"product": jnp.einsum("btf,bsf->bts", *features)[:, None]}


def find_missing_error(name, causal):
    """0 if `bias_of_pair` is NaN at positions that are NaN."""
    encoding = getattr(layers, name)(**ENCODINGS[name])
    encoding.build((2, 20, 4, 8))
    missing = np.full((1, 1), np.nan, "float32")
    invalid = encoding.bias_of_pair(
        *(list(encoding.make_pair_parameters(4)[0]), missing, missing + 0),
        causal=causal,
        **multiply(encoding.make_pair_features(missing, missing + 0)),
    )
    return 0.0 if np.isnan(invalid).all() else np.inf


REAL = np.ones((2, 20), bool)
# Padding between real tokens too, so that ranks are not indices.
REAL[1, [6, 7, 15, 16, 17, 18, 19]] = False


def make_case(encoding=None, tokens=20, keys=None, **options):
    """A layer with random weights, and inputs: padded, or with positions."""
    keras.utils.set_random_seed(0)
    random = np.random.default_rng(0)
    arguments = {"num_heads": 4, "key_dim": 16, **options}
    layer = MultiHeadAttention(encoding=encoding and encoding(), **arguments)
    inputs = jnp.array(random.normal(size=(2, tokens, 24)), "float32")
    value, places = inputs, {"value_mask": jnp.array(REAL)}
    if keys is not None:
        value = jnp.array(random.normal(size=(2, keys, 24)), "float32")
        rows = [random.permutation(3 * keys)[:keys] for _ in range(2)]
        rows = np.sort(rows).astype("int32")
        places = {"positions": rows[:, -tokens:], "key_positions": rows}
    layer.build(inputs.shape, value.shape)
    for weight in layer.trainable_variables:
        weight.assign(weight + 0.1 * random.random(size=weight.shape))
    return layer, (inputs, value), places


def make_score(layer, **call):
    """A function of weights and inputs, and the weights of a layer."""
    weights, fixed = (
        [weight.value for weight in weights]
        for weights in (
            layer.trainable_variables,
            layer.non_trainable_variables,
        )
    )

    def score(weights, inputs):
        outputs, _ = layer.stateless_call(weights, fixed, *inputs, **call)
        return jnp.sum(jnp.cos(outputs)), outputs

    return score, weights


def find_layer_error(use_causal_mask=False, **case):
    """Error of outputs, and of gradients by the inputs and all weights."""
    layer, inputs, places = make_case(**case)
    results = []
    for fused_or_not in (True, False):
        layer.fused = fused_or_not
        score, weights = make_score(
            layer, use_causal_mask=use_causal_mask, **places
        )
        differentiate = jax.jit(jax.grad(score, (0, 1), has_aux=True))
        results.append(jax.tree.leaves(differentiate(weights, inputs)))
    found, expected = results
    scales = [float(jnp.max(jnp.abs(array))) for array in expected]
    # Some gradients are zeros, but for rounding.
    return max(
        float(jnp.max(jnp.abs(a - b))) / max(scale, 0.1 * max(scales))
        for a, b, scale in zip(found, expected, scales, strict=True)
    )


RATE = 0.3


def make_dropout():
    """A layer with dropout that returns its weights, and its inputs."""
    layer = MultiHeadAttention(
        *(1, 20),
        encoding=LogKERPLE(),
        dropout=RATE,
        use_bias=False,
        output_shape=20,
        seed=3,
    )
    states = jnp.sin(jnp.arange(960.0)).reshape(2, 20, 24)
    # Every key has a place of its own in the output.
    unit = jnp.tile(jnp.eye(20), (2, 1, 1))
    inputs = states, unit, states
    layer.build(*(each.shape for each in inputs))
    for weight in layer.trainable_variables:
        numbers = jnp.cos(jnp.arange(weight.value.size)) / 8
        weight.assign(numbers.reshape(weight.shape))
    for dense in (layer.value_dense, layer.output_dense):
        dense.kernel.assign(jnp.eye(20))
    return layer, inputs


def find_dropout_errors():
    """Errors of the weights that are kept, of their share, and of a slope."""
    layer, inputs = make_dropout()
    before = layer(*inputs)
    layer.fused = True
    score, weights = make_score(layer, training=True)
    gradient, after = jax.grad(score, has_aux=True)(weights, inputs)
    kept = jnp.where(after > 0, before / (1 - RATE), 0)
    steps = [0.01 * jnp.sign(each) for each in gradient]
    ends = []
    for sign in (1, -1):
        moved = [w + sign * s for w, s in zip(weights, steps, strict=True)]
        ends.append(score(moved, inputs)[0])
    slope = sum(jnp.sum(g * s) for g, s in zip(gradient, steps, strict=True))
    return {
        "weights": float(jnp.max(jnp.abs(after - kept))),
        "share": float(jnp.mean(after == 0) - RATE),
        "slope": float(abs((ends[0] - ends[1]) / 2 / slope - 1)),
    }


def drop():
    """The weights after fused dropout."""
    layer, inputs = make_dropout()
    layer.fused = True
    return np.array(layer(*inputs, training=True))


def find_sharded_errors():
    """Errors on two devices that share the batch: of fused attention, and of
    its dropout, which is that of one device."""
    case = CASES["window, cap and sinks"]
    devices = keras.distribution.DataParallel(devices=jax.devices())
    on_one_device = drop()
    keras.distribution.set_distribution(devices)
    found = {"devices": find_layer_error(**case)}
    on_both = drop()
    keras.distribution.set_distribution(None)
    found["dropout"] = float(np.abs(on_one_device - on_both).max())
    return found


REFUSED = {
    "weights": ({}, {"return_attention_scores": True}),
    "mask": ({}, {"attention_mask": np.ones((5, 5), bool)}),
    "length": ({"score_factor": "log_length", "logit_soft_cap": 2.0}, {}),
    "sampled": ({"encoding": RandomizedALiBi()}, {}),
}


def find_refusal(arguments, options):
    """What `fused=True` says where it is not possible."""
    inputs = jnp.ones((2, 5, 24))
    try:
        layer = MultiHeadAttention(2, 8, fused=True, **arguments)
        layer(inputs, inputs, **options)
    except ValueError as error:
        return str(error)


def find_errors_of_encoding(name):
    def encoding():
        return getattr(layers, name)(**ENCODINGS[name])

    found = []
    for causal in (False, True):
        case = {"encoding": encoding, "use_causal_mask": causal}
        found += [find_missing_error(name, causal)]
        found += [find_layer_error(keys=20, **case)]
    return found


def main(path):
    refusals = {"device": find_refusal({}, {})}
    fused.INTERPRET = True
    refusals |= {name: find_refusal(*row) for name, row in REFUSED.items()}
    found = {
        "refusals": refusals,
        "dropout": find_dropout_errors(),
        "encodings": {
            name: find_errors_of_encoding(name) for name in ENCODINGS
        },
        "layers": {
            **{name: find_layer_error(**case) for name, case in CASES.items()},
            **find_sharded_errors(),
        },
    }
    pathlib.Path(path).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
