"""Attention by the flash attention of Keras, where a layer demands it."""

from keras import ops

from keras_lengen.layers.attention.call import Call
from keras_lengen.layers.attention.rule import Rule
from keras_lengen.layers.attention.scores import ScoreRule
from keras_lengen.layers.attention.visibility import Reach
from keras_lengen.types import Tensor


def check_flash(rule: Rule, others: dict[str, bool]) -> None:
    """Raises `ValueError` if flash attention cannot compute a layer.

    Args:
        rule: `Rule` of the layer.
        others: Whether the layer has other parts that it cannot compute, by
            their names.
    """
    scores = rule.scores
    for obstacle, present in (
        *others.items(),
        ("logit_soft_cap", scores.soft_cap is not None),
        *((factor.name, factor.counts) for factor in scores.factors),
        *((term.name, True) for term in scores.terms),
        *(
            (part.name, part.obstacle() is not None)
            for part in (scores.products, rule.weights)
        ),
    ):
        if present:
            raise ValueError(
                f"flash_attention=True cannot compute {obstacle}: leave it out."
            )


def attend_flash(scores: ScoreRule, call: Call, return_weights: bool) -> Tensor:
    """Computes the attention of all queries by flash attention.

    Args:
        scores: `ScoreRule`.
        call: `Call`.
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
    call, visible = call.repeat_heads(), call.visible
    query, key = scores.multiply_query(call), call.keys["key"]
    # Without other masks, the backend makes the causal mask itself.
    others = visible.given, visible.padding, visible.documents
    causal = all(each is None for each in others)
    causal = causal and visible.reach == Reach(causal=True)
    sizes = query.shape[1], key.shape[1]
    causal = causal and None not in sizes and sizes[0] == sizes[1]
    return ops.dot_product_attention(
        *(query, key, call.keys["value"]),
        mask=None if causal else visible.mask(),
        scale=scores.scale,
        is_causal=causal,
        flash_attention=True,
    )
