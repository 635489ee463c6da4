"""Fused attention: when a layer uses it, and how.

The kernels in `pallas_kernels.py` run on TPUs with JAX. They compute scores,
biases, masks and dropout in the fast memory of the chip.
"""

import functools
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

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
) -> bool:
    """Decides whether a call of attention uses the fused kernels.

    Args:
        layer: `MultiHeadAttention`.
        query: Rotated queries `(B, T, H, D)`.
        key: Rotated keys `(B, S, heads, D)`.
        context: `Context`.
        return_weights: bool, whether attention weights are wanted.

    Raises:
        ValueError: If the layer demands it, `fused=True`, and it is not
            possible.
    """
    if layer.fused is False:
        return False
    obstacle = find_obstacle(layer, query, key, context, return_weights)
    if obstacle is not None and layer.fused is True:
        raise ValueError(
            f"fused=True is not possible because {obstacle}: use "
            'fused="auto", which then computes the scores in memory.'
        )
    return obstacle is None


def find_obstacle(
    layer: "MultiHeadAttention",
    query: Tensor,
    key: Tensor,
    context: "Context",
    return_weights: bool,
) -> str | None:
    """Finds out why a call of attention cannot use the fused kernels.

    Args:
        layer: `MultiHeadAttention`.
        query: Rotated queries `(B, T, H, D)`.
        key: Rotated keys `(B, S, heads, D)`.
        context: `Context`.
        return_weights: bool, whether attention weights are wanted.

    Returns:
        str, the reason; or `None` if it can.
    """
    if keras.backend.backend() != "jax":
        return f"its kernels need JAX, not {keras.backend.backend()}"
    if _differs(layer):
        return f"{type(layer).__name__} computes weights of its own"
    device = None if INTERPRET else _find_device_obstacle()
    if device is not None:
        return device
    sizes = (*query.shape, *key.shape)
    if not all(isinstance(size, int) and size for size in sizes):
        return "sizes are unknown when the model is traced"
    encoding = layer.encoding
    for obstacle, present in (
        ("attention weights are to be returned", return_weights),
        ("there is an attention_mask", context.attention_mask is not None),
        ("there is a cache", context.index is not None),
        ('score_factor is "log_length"', layer.score_factor == "log_length"),
        ("there is a train_length", layer.train_length is not None),
        ("there is a logit_soft_cap", layer.logit_soft_cap is not None),
        ("there are learned sinks", layer.use_sinks),
        ("there is a sliding_window", layer.sliding_window is not None),
        (
            f"{type(encoding).__name__} rotates queries and keys twice",
            encoding.rotations > 1,
        ),
    ):
        if present:
            return obstacle
    return _find_bias_obstacle(layer) if encoding.stage == "bias" else None


def _differs(layer: "MultiHeadAttention") -> bool:
    """Whether a subclass computes attention weights in another way."""
    from keras_lengen.layers.attention.multi_head import MultiHeadAttention

    own, base = type(layer), MultiHeadAttention
    return (
        own._attend is not base._attend
        or own._compute_scores is not base._compute_scores
        or own._compute_weights is not base._compute_weights
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


def _find_device_obstacle() -> str | None:
    import jax

    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        kind, devices = jax.default_backend(), jax.device_count()
    else:
        kind = getattr(mesh.abstract_device, "device_kind", "") or ""
        devices = mesh.size
    if "tpu" not in kind.lower():
        return "its kernels need a TPU"
    if devices > 1:
        return f"the batch may be divided among {devices} devices"
    return None


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
    from keras_lengen.layers.attention.pallas_kernels import attend

    encoding, heads = layer.encoding, layer.num_heads
    operands: dict[str, Any] = {"key_mask": context.key_mask}
    bias, learned = None, False
    if encoding.stage == "bias":
        bias = functools.partial(
            encoding.bias_of_pair,
            causal=context.causal and encoding.sampler.keeps_order,
        )
        learned = bool(encoding.weights)
        operands |= {
            "parameters": encoding.make_pair_parameters(heads),
            "query_positions": _as_rows(context.positions),
            "key_positions": _as_rows(context.key_positions),
        }
    dropout = layer.dropout if training else 0.0
    if dropout:
        numbers = keras.random.randint(
            (2,), 0, 2**31 - 1, seed=layer.dropout_layer.seed_generator
        )
        operands["seed"] = ops.pad(ops.cast(numbers, "int32"), [[0, 1]])
    if layer.score_factor == "head":
        factor = ops.reshape(ops.cast(layer.factor, "float32"), (heads, 1))
        scaled = ops.cast(query, "float32") * factor
        query = ops.cast(scaled, query.dtype)
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
        causal=context.causal,
        dropout=dropout,
        bias=bias,
        parameters=0 if parameters is None else parameters.shape[1],
        learned=learned,
        interpret=INTERPRET,
    )
    output, _ = attend(plan, query, key, value, **operands)
    return output


def _as_rows(positions: Tensor) -> Tensor:
    """Returns positions `(T,)` or `(B, T)` as float32 `(1 or B, T)`."""
    positions = ops.cast(positions, "float32")
    if len(positions.shape) == 1:
        positions = ops.expand_dims(positions, 0)
    return positions
