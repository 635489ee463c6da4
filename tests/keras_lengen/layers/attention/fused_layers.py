"""Compares layers and models with and without fused attention, on JAX.

KERAS_BACKEND=jax python -m tests.keras_lengen.layers.attention.fused_layers \
    errors.json
"""

import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import keras
import numpy as np

from keras_lengen.layers import (
    LogKERPLE,
    MultiHeadAttention,
    PoPE,
    RandomizedALiBi,
)
from keras_lengen.layers.attention import fused

CASES = {
    "polar": {"encoding": PoPE, "num_key_value_heads": 2},
    "factors and shared heads": {
        "encoding": LogKERPLE,
        "use_causal_mask": True,
        "score_factor": "head",
        "num_key_value_heads": 2,
        "scale_scores": False,
    },
    "window, cap and sinks": {
        "encoding": LogKERPLE,
        "use_causal_mask": True,
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
    "adaptive": {
        "encoding": LogKERPLE,
        "use_causal_mask": True,
        "score_factor": "adaptive",
    },
    "trained length": {
        "encoding": LogKERPLE,
        "use_causal_mask": True,
        "train_length": 4,
    },
}

REAL = np.ones((2, 20), bool)
# Padding between real tokens too, so that ranks are not indices.
REAL[1, [6, 7, 15, 16, 17, 18, 19]] = False


def find_layer_error(encoding=None, use_causal_mask=False, **options):
    """Error of outputs and gradients; the first call must really be fused."""
    random = np.random.default_rng(0)
    layer = MultiHeadAttention(
        4, 16, encoding=encoding and encoding(), **options
    )
    inputs = jnp.array(random.normal(size=(2, 20, 24)), "float32")
    layer(inputs, inputs)
    weights, fixed = (
        [weight.value for weight in weights]
        for weights in (
            layer.trainable_variables,
            layer.non_trainable_variables,
        )
    )

    def score(weights):
        outputs, _ = layer.stateless_call(
            *(weights, fixed, inputs, inputs),
            value_mask=jnp.array(REAL),
            use_causal_mask=use_causal_mask,
        )
        return jnp.sum(jnp.cos(outputs)), outputs

    results = []
    for fused_or_not in (True, False):
        layer.fused = fused_or_not
        differentiate = jax.jit(jax.grad(score, has_aux=True))
        results.append(jax.tree.leaves(differentiate(weights)))
    found, expected = results
    scale = max(float(jnp.max(jnp.abs(array))) for array in expected)
    return max(
        float(jnp.max(jnp.abs(a - b))) / scale
        for a, b in zip(found, expected, strict=True)
    )


def find_sharded_errors():
    """Errors on two devices that share the batch: of fused attention, and of
    its dropout, which is that of one device."""
    case = CASES["window, cap and sinks"]
    devices = keras.distribution.DataParallel(devices=jax.devices())
    alone = drop_alone()
    keras.distribution.set_distribution(devices)
    found = {"devices": find_layer_error(**case)}
    shared = drop_alone()
    keras.distribution.set_distribution(None)
    found["dropout"] = float(jnp.max(jnp.abs(alone - shared)))
    return found


def drop_alone():
    layer = MultiHeadAttention(2, 8, dropout=0.5, fused=True, seed=3)
    layer.build((2, 20, 24), (2, 20, 24))
    for weight in layer.weights:
        weight.assign(
            jnp.cos(jnp.arange(weight.value.size)).reshape(weight.shape)
        )
    inputs = jnp.sin(jnp.arange(960.0)).reshape(2, 20, 24)
    return np.array(layer(inputs, inputs, training=True))


def find_refusals():
    """What `fused=True` says where it is not possible."""
    inputs = jnp.ones((2, 5, 24))
    found = {}
    for name, arguments, options in (
        ("weights", {}, {"return_attention_scores": True}),
        ("mask", {}, {"attention_mask": jnp.ones((5, 5), bool)}),
        (
            "length",
            {"score_factor": "log_length", "logit_soft_cap": 2.0},
            {},
        ),
        ("entmax", {"use_entmax": True}, {}),
        ("sampled", {"encoding": RandomizedALiBi()}, {}),
    ):
        try:
            layer = MultiHeadAttention(2, 8, fused=True, **arguments)
            layer(inputs, inputs, **options)
        except ValueError as error:
            found[name] = str(error)
    return found


def main(path):
    layer = MultiHeadAttention(2, 8, fused=True)
    try:
        layer(jnp.ones((2, 5, 24)), jnp.ones((2, 5, 24)))
    except ValueError as error:
        without_tpu = str(error)
    fused.INTERPRET = True
    found = {
        "errors": {
            name: find_layer_error(**case) for name, case in CASES.items()
        },
        "refusals": {"device": without_tpu, **find_refusals()},
    }
    found["errors"] |= find_sharded_errors()
    pathlib.Path(path).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
