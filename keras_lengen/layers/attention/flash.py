"""Attention by the flash attention of Keras, where a layer demands it."""

from typing import TYPE_CHECKING

from keras import ops

from keras_lengen.layers.attention.fused import computes_otherwise
from keras_lengen.types import Tensor

if TYPE_CHECKING:
    from keras_lengen.layers.attention.inputs import Context
    from keras_lengen.layers.attention.multi_head import MultiHeadAttention


def check_flash(layer: "MultiHeadAttention") -> None:
    """Raises `ValueError` if flash attention cannot compute a layer."""
    name = type(layer.encoding).__name__
    weights = layer.make_weights().obstacle()
    for obstacle, present in (
        ("dropout of attention weights", layer.dropout),
        (f"the bias of {name}", layer.encoding.stage == "bias"),
        (f"the wider keys of {name}", layer.encoding.rotations > 1),
        ('score_factor="log_length"', layer.score_factor == "log_length"),
        ("train_length", layer.train_length is not None),
        ("logit_soft_cap", layer.logit_soft_cap is not None),
        ("learned sinks", layer.use_sinks),
        (weights, weights is not None),
        ("the kernels of fused=True", layer.fused is True),
        (f"the scores of {type(layer).__name__}", computes_otherwise(layer)),
    ):
        if present:
            raise ValueError(
                f"flash_attention=True cannot compute {obstacle}: leave it out."
            )


def attend_flash(
    layer: "MultiHeadAttention",
    query: Tensor,
    key: Tensor,
    value: Tensor,
    context: "Context",
    return_weights: bool,
) -> Tensor:
    """Computes the attention of all queries by flash attention.

    Args:
        layer: `MultiHeadAttention`.
        query: Rotated queries `(B, T, H, D)`.
        key: Rotated keys `(B, S, H, D)`.
        value: Values `(B, S, H, value_dim)`.
        context: `Context`.
        return_weights: bool, whether attention weights are wanted.

    Returns:
        Weighted sums of the values `(B, T, H, value_dim)`.

    Raises:
        ValueError: If attention weights are wanted, or Keras has no flash
            attention for the device and the dtype.
    """
    if return_weights:
        raise ValueError(
            "flash attention does not return attention scores: leave "
            "flash_attention=True or return_attention_scores=True out."
        )
    if layer.score_factor == "head":
        factor = ops.transpose(ops.cast(layer.factor, query.dtype), (1, 0, 2))
        query = query * factor
    # Without other masks, the backend makes the causal mask itself.
    others = (
        context.attention_mask,
        context.key_mask,
        context.window,
        context.documents,
    )
    causal = context.reach.causal and all(each is None for each in others)
    sizes = query.shape[1], key.shape[1]
    causal = causal and None not in sizes and sizes[0] == sizes[1]
    visible = context.visible or context.see(key)
    return ops.dot_product_attention(
        *(query, key, value),
        mask=None if causal else visible.mask(),
        scale=layer.key_dim**-0.5 if layer.scale_scores else 1.0,
        is_causal=causal,
        flash_attention=True,
    )
