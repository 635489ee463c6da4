"""Fused attention: when a layer uses it, and how.

The kernels in `pallas_kernels.py` run on TPUs with JAX. They compute scores,
biases, masks and dropout in the fast memory of the chip.
"""

import functools
from typing import Any, Literal

import keras
from keras import ops

from keras_lengen.layers.attention.call import Call
from keras_lengen.layers.attention.fused_devices import (
    attend_on_devices,
    find_device_obstacle,
)
from keras_lengen.layers.attention.positional import EncodedBias
from keras_lengen.layers.attention.rule import Rule
from keras_lengen.types import Tensor

INTERPRET = False
"""Whether the kernels are computed without a TPU, slowly; for tests."""


def is_fused(
    wanted: bool | Literal["auto"],
    rule: Rule,
    call: Call,
    *,
    has_cache: bool,
    return_weights: bool,
) -> bool:
    """Decides whether a call of attention uses the fused kernels.

    Args:
        wanted: The argument `fused` of `MultiHeadAttention`.
        rule: `Rule`.
        call: `Call`.
        has_cache: bool, whether the call updates a cache.
        return_weights: bool, whether attention weights are wanted.

    Raises:
        ValueError: If they are required, but not possible.
    """
    if wanted is False:
        return False
    obstacle = find_obstacle(
        rule, call, has_cache=has_cache, return_weights=return_weights
    )
    if wanted is True:
        refuse(obstacle)
    return obstacle is None


def refuse(obstacle: str | None) -> None:
    """Raises `ValueError` if there is an obstacle to `fused=True`."""
    if obstacle is not None:
        raise ValueError(
            f"fused=True is not possible because {obstacle}: use "
            'fused="auto", which then computes the scores in memory.'
        )


def find_obstacle(
    rule: Rule, call: Call, *, has_cache: bool, return_weights: bool
) -> str | None:
    """Finds out why a call of attention cannot use the fused kernels.

    Args:
        rule: `Rule`.
        call: `Call`.
        has_cache: bool, whether the call updates a cache.
        return_weights: bool, whether attention weights are wanted.

    Returns:
        str, the reason; or `None` if it can.
    """
    # First, because other backends ask in every call.
    obstacle = find_backend_obstacle() or rule.obstacle()
    if obstacle is not None:
        return obstacle
    query, visible = call.queries["query"], call.visible
    sizes = (*query.shape, *call.keys["key"].shape)
    if not all(isinstance(size, int) and size for size in sizes):
        return "sizes are unknown when the model is traced"
    obstacle = find_device_obstacle(query.shape[0], any_kind=INTERPRET)
    if obstacle is not None:
        return obstacle
    scores = rule.scores
    hiding = ", ".join(term.name for term in scores.terms if term.hides)
    for obstacle, present in (
        ("attention weights are to be returned", return_weights),
        ("there is an attention_mask", visible.given is not None),
        ("there are segment_ids", visible.documents is not None),
        ("there is a cache", has_cache),
        (
            "a soft cap is multiplied by a function of the number of keys",
            scores.counts and scores.soft_cap is not None,
        ),
        (
            f"scores depend on the number of keys that {hiding} does not hide",
            scores.counts and bool(hiding),
        ),
    ):
        if present:
            return obstacle
    bias = _find_bias(rule)
    if bias is None:
        return None
    from keras_lengen.layers.attention.fused_plan import MOST_PARAMETERS

    most, name = MOST_PARAMETERS, type(bias).__name__
    count = bias.make_pair_parameters(query.shape[2]).shape[-1]
    if count > most:
        return f"{name} has {count} numbers per head, more than {most}"
    return None


def find_backend_obstacle() -> str | None:
    """Finds out why the backend cannot compute the fused kernels."""
    backend = keras.backend.backend()
    return None if backend == "jax" else f"its kernels need JAX, not {backend}"


def _find_bias(rule: Rule) -> Any:
    """Finds the encoding whose bias the scores have, if any."""
    for term in rule.scores.terms:
        if isinstance(term, EncodedBias):
            return term.encoding
    return None


def attend_fused(rule: Rule, call: Call) -> Tensor:
    """Computes the attention of all queries by the fused kernels.

    Args:
        rule: `Rule`.
        call: `Call`, whose keys and values may have fewer heads.

    Returns:
        Weighted sums of the values `(B, T, H, value_dim)`.
    """
    from keras_lengen.layers.attention.fused_plan import Plan

    visible, encoding = call.visible, _find_bias(rule)
    query = rule.scores.multiply_query(call)
    key, value = call.keys["key"], call.keys["value"]
    operands: dict[str, Any] = {"key_mask": visible.padding}
    bias, learned = None, False
    if encoding is not None:
        bias = functools.partial(
            encoding.bias_of_pair,
            causal=visible.reach.causal and encoding.sampler.is_increasing,
        )
        learned = bool(encoding.weights)
        operands |= {
            "parameters": encoding.make_pair_parameters(query.shape[2]),
            "query_positions": _as_rows(call.positions),
            "key_positions": _as_rows(call.key_positions),
        }
        features = encoding.make_pair_features(
            call.positions, call.key_positions
        )
        if features is not None:
            operands["query_features"], operands["key_features"] = features
    if visible.reach.window is not None and visible.padding is not None:
        # Otherwise ranks are indices.
        operands |= {
            "query_ranks": visible.queries,
            "key_ranks": visible.keys,
        }
    dropout = 0.0
    if rule.dropout is not None:
        dropout = rule.dropout.rate
        numbers = keras.random.randint((2,), 0, 2**31 - 1, seed=rule.generator)
        operands["seed"] = ops.pad(ops.cast(numbers, "int32"), [[0, 1]])
    parameters = operands.get("parameters")
    plan = Plan(
        heads=query.shape[2],
        key_heads=key.shape[2],
        width=query.shape[3],
        value_width=value.shape[3],
        tokens=query.shape[1],
        keys=key.shape[1],
        first=key.shape[1] - query.shape[1],
        scale=rule.scores.scale,
        reach=visible.reach,
        soft_cap=rule.scores.soft_cap,
        dropout=dropout,
        bias=bias,
        parameters=0 if parameters is None else parameters.shape[1],
        learned=learned,
        interpret=INTERPRET,
    )
    output, totals = attend_on_devices(plan, query, key, value, operands)
    return rule.weights.finish(output, totals)


def _as_rows(positions: Tensor) -> Tensor:
    """Returns positions `(T,)` or `(B, T)` as float32 `(1 or B, T)`."""
    positions = ops.cast(positions, "float32")
    if len(positions.shape) == 1:
        positions = ops.expand_dims(positions, 0)
    return positions
