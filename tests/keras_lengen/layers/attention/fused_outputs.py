"""Compares fused attention with the same formulas without kernels, on JAX.

KERAS_BACKEND=jax \
    python -m tests.keras_lengen.layers.attention.fused_outputs errors.json
"""

import functools
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import keras
import numpy as np

from keras_lengen import layers
from keras_lengen.layers import (
    LogKERPLE,
    MultiHeadAttention,
    PoPE,
    RandomizedALiBi,
)
from keras_lengen.layers.attention import fused, pallas_kernels
from keras_lengen.layers.attention.fused_plan import Plan, keeps

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

PLANS = {
    "more keys": {
        "name": "LogKERPLE",
        "causal": True,
        "tokens": 20,
        "keys": 50,
    },
    "shared heads": {
        "name": "LogKERPLE",
        "causal": True,
        "heads": 8,
        "key_heads": 2,
        "width": 64,
        "value_width": 32,
    },
    "odd widths": {
        "name": None,
        "causal": False,
        "heads": 3,
        "width": 8,
        "value_width": 5,
    },
    "several blocks": {
        "name": "LogKERPLE",
        "causal": True,
        "batch": 1,
        "tokens": 1100,
        "window": 300,
        "sink_tokens": 3,
    },
    "window and cap": {
        "name": "LogKERPLE",
        "causal": False,
        "batch": 1,
        "tokens": 600,
        "keys": 700,
        "window": 100,
        "soft_cap": 2.0,
    },
    "dropout": {
        "name": "LogKERPLE",
        "causal": True,
        "padding": 5,
        "dropout": 0.3,
    },
}
"""Arguments of `find_errors`."""


def compute_plainly(
    plan, query, key, value, parameters, positions, features, mask, seed
):
    """Attention by its definition, with all scores in memory."""
    batch, tokens, heads, _ = query.shape
    keys = key.shape[1]
    key, value = (
        jnp.repeat(each, heads // each.shape[2], 2) for each in (key, value)
    )
    scores = jnp.einsum("bthd,bshd->bhts", query, key) * plan.scale
    if plan.soft_cap:
        scores = plan.soft_cap * jnp.tanh(scores / plan.soft_cap)
    if plan.bias:
        numbers = jnp.moveaxis(parameters, 1, 0)[:, None, :, None, None]
        scores = scores + plan.bias(
            list(numbers),
            positions[:, None, -tokens:, None],
            positions[:, None, None, :],
            **multiply(features),
        )
    i = plan.first + np.arange(tokens)[:, None]
    j = np.arange(keys)[None]
    seen = np.ones((tokens, keys), bool)
    if plan.window:
        seen &= i - j < plan.window
        seen &= plan.causal | (j - i < plan.window)
        seen |= j < plan.sink_tokens
    if plan.causal:
        seen &= j <= i
    seen = seen[None, None] & np.asarray(mask)[:, None, None]
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e30), -1)
    # A query without keys gets zeros.
    weights = jnp.where(seen, weights, 0.0)
    totals = jnp.log(jnp.sum(jnp.where(seen, jnp.exp(scores), 0.0), -1))
    if plan.dropout:
        kept = [
            [
                keeps(
                    *(seed[0], seed[1], seed[2] + b, jnp.int32(h)),
                    *(jnp.int32(i), jnp.int32(j)),
                    rate=plan.dropout,
                )
                for h in range(heads)
            ]
            for b in range(batch)
        ]
        weights = jnp.where(jnp.array(kept), weights / (1 - plan.dropout), 0)
    return jnp.einsum("bhts,bshd->bthd", weights, value), totals


def multiply(features):
    if features is None:
        return {}
    return {"product": jnp.einsum("btf,bsf->bts", *features)[:, None]}


def find_errors(name, causal, *, batch=2, tokens=40, heads=4, **options):
    """Relative errors of the results and of all gradients.

    `options` are sizes, the number of tokens of `padding`, and attributes of
    the `Plan`.
    """
    keras.utils.set_random_seed(0)
    random = np.random.default_rng(0)
    keys = options.pop("keys", tokens)
    key_heads = options.pop("key_heads", heads)
    width = options.pop("width", 32)
    value_width = options.pop("value_width", width)
    padding = options.pop("padding", 0)
    bias, parameters, learned = None, None, False
    if name is not None:
        encoding = getattr(layers, name)(**ENCODINGS[name])
        encoding.build((batch, tokens, heads, width))
        for weight in encoding.weights:
            weight.assign(weight + 0.1 * random.random(size=weight.shape))
        bias = functools.partial(encoding.bias_of_pair, causal=causal)
        parameters = encoding.make_pair_parameters(heads)
        learned = bool(encoding.weights)
    plan = Plan(
        heads=heads,
        key_heads=key_heads,
        width=width,
        value_width=value_width,
        tokens=tokens,
        keys=keys,
        first=keys - tokens,
        scale=width**-0.5,
        causal=causal,
        bias=bias,
        parameters=0 if bias is None else parameters.shape[1],
        learned=learned,
        interpret=True,
        **options,
    )
    tensors = [
        jnp.array(random.normal(size=(batch, *shape)), "float32")
        for shape in (
            (tokens, heads, width),
            (keys, key_heads, width),
            (keys, key_heads, value_width),
            (tokens, heads, value_width),
            (heads, tokens),
        )
    ]
    *tensors, factors, more = tensors
    positions = np.sort(random.choice(900, (batch, keys)), -1).astype("float32")
    mask = np.arange(keys) >= padding * np.arange(batch)[:, None]
    seed = jnp.array([12345, 678, 3], "int32")
    features = None
    if name is not None:
        features = encoding.make_pair_features(
            positions[:, -tokens:], positions
        )

    def fused(query, key, value, parameters):
        return pallas_kernels.attend(
            *(plan, query, key, value),
            parameters=parameters,
            query_positions=None if bias is None else positions[:, -tokens:],
            key_positions=None if bias is None else positions,
            query_features=None if features is None else features[0],
            key_features=None if features is None else features[1],
            key_mask=jnp.array(mask) if padding else None,
            seed=seed if plan.dropout else None,
        )

    def plain(query, key, value, parameters):
        return compute_plainly(
            *(plan, query, key, value, parameters, positions, features),
            *(mask, seed),
        )

    def differentiate(attend):
        def score(*tensors):
            output, totals = attend(*tensors)
            seen = totals > -1e29
            score = jnp.sum(output * factors)
            score += jnp.sum(jnp.where(seen, totals, 0.0) * more)
            return score, (output, jnp.where(seen, totals, 0.0))

        arguments = range(4 if learned else 3)
        return jax.jit(jax.grad(score, tuple(arguments), has_aux=True))

    found, wanted = (
        jax.tree.leaves(differentiate(attend)(*tensors, parameters))
        for attend in (fused, plain)
    )
    return [
        float(jnp.max(jnp.abs(a - b)) / jnp.max(jnp.abs(b)))
        for a, b in zip(found, wanted, strict=True)
    ]


def find_pair_error(name, causal):
    """Relative error of `bias_of_pair`, against the bias of the encoding."""
    random = np.random.default_rng(1)
    encoding = getattr(layers, name)(**ENCODINGS[name])
    encoding.build((2, 20, 4, 8))
    for weight in encoding.weights:
        weight.assign(weight + 0.1 * random.random(size=weight.shape))
    positions = random.choice(300, (2, 20)).astype("float32")
    query, key = jnp.ones((2, 15, 4, 8)), jnp.ones((2, 20, 4, 8))
    wanted = encoding.attention_bias(
        query, key, positions[:, 5:], positions, causal=causal
    )
    parameters = encoding.make_pair_parameters(4)
    found = encoding.bias_of_pair(
        list(jnp.moveaxis(parameters, 1, 0)[:, None, :, None, None]),
        positions[:, None, 5:, None],
        positions[:, None, None, :],
        causal=causal,
        **multiply(encoding.make_pair_features(positions[:, 5:], positions)),
    )
    missing = np.full((1, 1), np.nan, "float32")
    invalid = encoding.bias_of_pair(
        *(list(parameters[0]), missing, missing + 0),
        causal=causal,
        **multiply(encoding.make_pair_features(missing, missing + 0)),
    )
    if not np.isnan(invalid).all():
        return np.inf
    error = jnp.max(jnp.abs(found - wanted)) / jnp.max(jnp.abs(wanted))
    return float(error)


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


REFUSED = {
    "weights": ({}, {"return_attention_scores": True}),
    "mask": ({}, {"attention_mask": np.ones((5, 5), bool)}),
    "length": ({"score_factor": "log_length", "logit_soft_cap": 2.0}, {}),
    "entmax": ({"use_entmax": True}, {}),
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
    found = [find_pair_error(name, causal) for causal in (False, True)]
    # Kernels get the bias as a function, so that one of them is enough, but for
    # the one whose buckets differ.
    for causal in (False, True) if name == "T5Bias" else (True,):
        found += find_errors(name, causal)
    return found


def main(path):
    refusals = {"device": find_refusal({}, {})}
    fused.INTERPRET = True
    refusals |= {name: find_refusal(*row) for name, row in REFUSED.items()}
    found = {
        "refusals": refusals,
        "plans": {name: find_errors(**plan) for name, plan in PLANS.items()},
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
