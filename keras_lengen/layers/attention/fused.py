"""Fused attention: when a layer uses it, and how.

The kernels in `pallas_kernels.py` run on TPUs with JAX. They compute scores,
biases, masks and dropout in the fast memory of the chip.
"""

import functools
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_lengen.layers.attention.fused_devices import (
    attend_on_devices,
    find_device_obstacle,
)
from keras_lengen.types import Tensor

if TYPE_CHECKING:
    from keras_lengen.layers.attention.inputs import Context
    from keras_lengen.layers.attention.multi_head import MultiHeadAttention
    from keras_lengen.layers.attention.parts import Call
    from keras_lengen.layers.attention.rule import Rule

INTERPRET = False
"""Whether the kernels are computed without a TPU, slowly; for tests."""


def is_fused(
    layer: "MultiHeadAttention",
    rule: "Rule",
    query: Tensor,
    key: Tensor,
    context: "Context",
    return_weights: bool,
) -> bool:
    """Decides whether a call of attention uses the fused kernels.

    Args:
        layer: `MultiHeadAttention`.
        rule: Its `Rule`.
        query: Rotated queries `(B, T, H, D)`.
        key: Rotated keys `(B, S, heads, D)`.
        context: `Context`.
        return_weights: bool, whether attention weights are wanted.

    Raises:
        ValueError: If the layer requires it, `fused=True`, and it is not
            possible.
    """
    if layer.fused is False:
        return False
    obstacle = find_obstacle(layer, rule, query, key, context, return_weights)
    if layer.fused is True:
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
    layer: "MultiHeadAttention",
    rule: "Rule",
    query: Tensor,
    key: Tensor,
    context: "Context",
    return_weights: bool,
) -> str | None:
    """Finds out why a call of attention cannot use the fused kernels.

    Args:
        layer: `MultiHeadAttention`.
        rule: Its `Rule`.
        query: Rotated queries `(B, T, H, D)`.
        key: Rotated keys `(B, S, heads, D)`.
        context: `Context`.
        return_weights: bool, whether attention weights are wanted.

    Returns:
        str, the reason; or `None` if it can.
    """
    # First, because other backends ask in every call.
    obstacle = find_backend_obstacle() or rule.obstacle()
    if obstacle is not None:
        return obstacle
    sizes = (*query.shape, *key.shape)
    if not all(isinstance(size, int) and size for size in sizes):
        return "sizes are unknown when the model is traced"
    obstacle = find_device_obstacle(query.shape[0], any_kind=INTERPRET)
    if obstacle is not None:
        return obstacle
    scores = rule.scores
    hiding = ", ".join(term.name for term in scores.terms if term.hides)
    for obstacle, present in (
        ("attention weights are to be returned", return_weights),
        ("there is an attention_mask", context.attention_mask is not None),
        ("there are segment_ids", context.documents is not None),
        ("there is a cache", context.index is not None),
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
    return _find_bias_obstacle(layer) if scores.terms else None


def find_backend_obstacle() -> str | None:
    """Finds out why the backend cannot compute the fused kernels."""
    backend = keras.backend.backend()
    return None if backend == "jax" else f"its kernels need JAX, not {backend}"


def _find_bias_obstacle(layer: "MultiHeadAttention") -> str | None:
    from keras_lengen.layers.attention.fused_plan import MOST_PARAMETERS

    encoding, most = layer.encoding, MOST_PARAMETERS
    count = encoding.make_pair_parameters(layer.num_heads).shape[-1]
    if count <= most:
        return None
    name = type(encoding).__name__
    return f"{name} has {count} numbers per head, more than {most}"


def attend_fused(
    layer: "MultiHeadAttention",
    rule: "Rule",
    call: "Call",
    context: "Context",
    training: bool | None,
) -> Tensor:
    """Computes the attention of all queries by the fused kernels.

    Args:
        layer: `MultiHeadAttention`.
        rule: Its `Rule`.
        call: `Call`, whose keys and values may have fewer heads.
        context: `Context`.
        training: bool or `None`, whether to apply dropout.

    Returns:
        Weighted sums of the values `(B, T, H, value_dim)`.
    """
    from keras_lengen.layers.attention.fused_plan import Plan

    heads, window = layer.num_heads, context.window
    query = rule.scores.multiply_query(call)
    key, value = call.keys["key"], call.keys["value"]
    operands: dict[str, Any] = {"key_mask": context.key_mask}
    bias, learned = None, False
    if rule.scores.terms:
        bias = functools.partial(
            layer.encoding.bias_of_pair,
            causal=context.reach.causal and layer.encoding.sampler.keeps_order,
        )
        learned = bool(layer.encoding.weights)
        operands |= {
            "parameters": layer.encoding.make_pair_parameters(heads),
            "query_positions": _as_rows(context.positions),
            "key_positions": _as_rows(context.key_positions),
        }
        features = layer.encoding.make_pair_features(
            context.positions, context.key_positions
        )
        if features is not None:
            operands["query_features"], operands["key_features"] = features
    if window is not None and context.key_mask is not None:
        # Otherwise ranks are indices.
        operands |= {
            "query_ranks": window.ranks,
            "key_ranks": window.key_ranks,
        }
    dropout = layer.dropout if training else 0.0
    if dropout:
        numbers = keras.random.randint(
            (2,), 0, 2**31 - 1, seed=layer.dropout_layer.seed_generator
        )
        operands["seed"] = ops.pad(ops.cast(numbers, "int32"), [[0, 1]])
    parameters = operands.get("parameters")
    plan = Plan(
        heads=heads,
        key_heads=key.shape[2],
        width=query.shape[3],
        value_width=value.shape[3],
        tokens=query.shape[1],
        keys=key.shape[1],
        first=key.shape[1] - query.shape[1],
        scale=rule.scores.scale,
        reach=context.reach,
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
