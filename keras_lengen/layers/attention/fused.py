"""Fused attention: when a layer uses it, and how.

The kernels in `pallas_kernels.py` run on TPUs with JAX. They compute scores,
biases, masks and dropout in the fast memory of the chip.
"""

import functools
import math
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

INTERPRET = False
"""Whether the kernels are computed without a TPU, slowly; for tests."""


def is_fused(
    layer: "MultiHeadAttention",
    query: Tensor,
    key: Tensor,
    context: "Context",
    return_weights: bool,
    training: bool | None = None,
) -> bool:
    """Decides whether a call of attention uses the fused kernels.

    Args:
        layer: `MultiHeadAttention`.
        query: Rotated queries `(B, T, H, D)`.
        key: Rotated keys `(B, S, heads, D)`.
        context: `Context`.
        return_weights: bool, whether attention weights are wanted.
        training: bool or `None`, whether the call trains.

    Raises:
        ValueError: If the layer requires it, `fused=True`, and it is not
            possible.
    """
    if layer.fused is False:
        return False
    obstacle = find_obstacle(
        layer, query, key, context, return_weights, training
    )
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
    query: Tensor,
    key: Tensor,
    context: "Context",
    return_weights: bool,
    training: bool | None = None,
) -> str | None:
    """Finds out why a call of attention cannot use the fused kernels.

    Args:
        layer: `MultiHeadAttention`.
        query: Rotated queries `(B, T, H, D)`.
        key: Rotated keys `(B, S, heads, D)`.
        context: `Context`.
        return_weights: bool, whether attention weights are wanted.
        training: bool or `None`, whether the call trains.

    Returns:
        str, the reason; or `None` if it can.
    """
    obstacle = find_layer_obstacle(layer) or find_backend_obstacle()
    if obstacle is not None:
        return obstacle
    sizes = (*query.shape, *key.shape)
    if not all(isinstance(size, int) and size for size in sizes):
        return "sizes are unknown when the model is traced"
    obstacle = find_device_obstacle(query.shape[0], any_kind=INTERPRET)
    if obstacle is not None:
        return obstacle
    encoding, scales = layer.encoding, _scales_by_length(layer, training)
    for obstacle, present in (
        ("attention weights are to be returned", return_weights),
        ("there is an attention_mask", context.attention_mask is not None),
        ("there are segment_ids", context.documents is not None),
        ("there is a cache", context.index is not None),
        (
            "a soft cap is multiplied by a function of the number of keys",
            scales and layer.logit_soft_cap is not None,
        ),
        (
            "scores depend on the number of keys that "
            f"{type(encoding).__name__} does not hide",
            scales and encoding.hides_keys,
        ),
    ):
        if present:
            return obstacle
    return _find_bias_obstacle(layer) if encoding.stage == "bias" else None


def find_layer_obstacle(layer: "MultiHeadAttention") -> str | None:
    """Finds out why no call of a layer can use the fused kernels.

    Returns:
        str, the reason; or `None` if some calls can.
    """
    if computes_otherwise(layer):
        return f"{type(layer).__name__} computes scores of its own"
    obstacle = layer.make_weights().obstacle()
    if obstacle is not None:
        return f"its kernels do not compute {obstacle}"
    if layer.encoding.reads_key_positions:
        name = type(layer.encoding).__name__
        return f"the products of {name} depend on distances"
    return None


def find_backend_obstacle() -> str | None:
    """Finds out why the backend cannot compute the fused kernels."""
    backend = keras.backend.backend()
    return None if backend == "jax" else f"its kernels need JAX, not {backend}"


def computes_otherwise(layer: "MultiHeadAttention") -> bool:
    """Whether a subclass computes scores in another way."""
    from keras_lengen.layers.attention.multi_head import MultiHeadAttention

    own, base = type(layer), MultiHeadAttention
    return (
        own._attend is not base._attend
        or own._compute_scores is not base._compute_scores
        or own._compute_bias is not base._compute_bias
    )


def _find_bias_obstacle(layer: "MultiHeadAttention") -> str | None:
    from keras_lengen.layers.attention.fused_plan import MOST_PARAMETERS
    from keras_lengen.layers.encodings.bias import BiasEncoding

    encoding, most = layer.encoding, MOST_PARAMETERS
    name = type(encoding).__name__
    if not isinstance(encoding, BiasEncoding):
        return f"the bias of {name} is no function of two positions"
    obstacle = encoding.find_pair_obstacle()
    if obstacle is not None:
        return obstacle
    count = encoding.make_pair_parameters(layer.num_heads).shape[-1]
    if count > most:
        return f"{name} has {count} numbers per head, more than {most}"
    return None


def _scales_by_length(
    layer: "MultiHeadAttention", training: bool | None
) -> bool:
    """Whether scores are multiplied by a function of the number of keys."""
    return layer.score_factor == "log_length" or (
        layer.train_length is not None and not training
    )


def attend_fused(
    layer: "MultiHeadAttention",
    query: Tensor,
    key: Tensor,
    value: Tensor,
    context: "Context",
    training: bool | None,
) -> Tensor:
    """Computes the attention of all queries by the fused kernels.

    Args:
        layer: `MultiHeadAttention`.
        query: Rotated queries `(B, T, H, D)`.
        key: Rotated keys `(B, S, heads, D)`.
        value: Values `(B, S, heads, value_dim)`.
        context: `Context`.
        training: bool or `None`, whether to apply dropout.

    Returns:
        Weighted sums of the values `(B, T, H, value_dim)`.
    """
    from keras_lengen.layers.attention.fused_plan import Plan

    heads, window = layer.num_heads, context.window
    operands: dict[str, Any] = {"key_mask": context.key_mask}
    bias, learned = None, False
    if layer.encoding.stage == "bias":
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
        scale=layer.key_dim**-0.5 if layer.scale_scores else 1.0,
        reach=context.reach,
        soft_cap=layer.logit_soft_cap,
        dropout=dropout,
        bias=bias,
        parameters=0 if parameters is None else parameters.shape[1],
        learned=learned,
        interpret=INTERPRET,
    )
    query = _scale_queries(layer, query, key, context, training)
    output, totals = attend_on_devices(plan, query, key, value, operands)
    return layer.make_weights().finish(output, totals)


def _scale_queries(
    layer: "MultiHeadAttention",
    query: Tensor,
    key: Tensor,
    context: "Context",
    training: bool | None,
) -> Tensor:
    """Multiplies queries `(B, T, H, D)` by the factors of their scores."""
    factor: Any = None
    if layer.score_factor in ("head", "log_length"):
        # (H, 1, 1) to (H, 1).
        factor = ops.cast(layer.factor, "float32")[:, 0]
    if _scales_by_length(layer, training):
        # (1 or B, 1, T, 1) to (1 or B, T, 1, 1).
        logs = ops.swapaxes(ops.log(context.see(key).count()), -3, -2)
        if layer.train_length is None:
            factor = factor * logs
        else:
            logs = ops.maximum(logs / math.log(layer.train_length), 1.0)
            factor = logs if factor is None else factor * logs
    if factor is None:
        return query
    return ops.cast(ops.cast(query, "float32") * factor, query.dtype)


def _as_rows(positions: Tensor) -> Tensor:
    """Returns positions `(T,)` or `(B, T)` as float32 `(1 or B, T)`."""
    positions = ops.cast(positions, "float32")
    if len(positions.shape) == 1:
        positions = ops.expand_dims(positions, 0)
    return positions
