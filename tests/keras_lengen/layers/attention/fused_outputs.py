"""Compares fused attention with the same formulas without kernels, on JAX.

KERAS_BACKEND=jax python -m tests.keras_lengen.layers.attention.fused_outputs \
    errors.json
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
from keras_lengen.layers.attention.fused_plan import Plan, keeps
from keras_lengen.layers.attention.pallas_kernels import (
    attend as attend_in_kernels,
)
from tests.keras_lengen.layers.attention.fused_cases import ENCODINGS, OPTIONS


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
        return attend_in_kernels(
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


def main(path):
    found = {name: find_errors(**case) for name, case in OPTIONS.items()}
    for name in ENCODINGS:
        found[name] = [
            find_pair_error(name, causal) for causal in (False, True)
        ]
        # Kernels get the bias as a function, so that one of them is enough,
        # but for the one whose buckets differ.
        for causal in (False, True) if name == "T5Bias" else (True,):
            found[name] += find_errors(name, causal)
    pathlib.Path(path).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
