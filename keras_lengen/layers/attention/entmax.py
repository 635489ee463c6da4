"""Sparse attention weights."""

import math

from keras import ops

from keras_lengen.types import Tensor

STEPS = 8
"""Steps of Newton's method. For up to 65,536 keys, six steps reach the rounding
errors of float32."""


def entmax(scores: Tensor) -> Tensor:
    """Computes sparse weights, alpha-entmax with `alpha = 1.5`.

    The weights of a query are `max(score / 2 - threshold, 0) ** 2`, where the
    threshold makes their sum 1: keys whose scores are low enough get weight 0.

    Newton's method finds the threshold. It starts below it and approaches it
    from there, because the root of the sum of squares is convex in the
    threshold. One more step is differentiated, which gives the exact gradient:
    `s * (g - m)` for the gradient `g` of the weights, where `s` are the roots
    of the weights and `m` is the mean of `g` weighted by `s`.

    Args:
        scores: float32 `(B, H, T, S)`.

    Returns:
        float32 `(B, H, T, S)`. If all scores are equal, as those of a query
        without keys, the weights are too.
    """
    # With `initial`, tensors may also be empty.
    largest = ops.stop_gradient(
        ops.max(scores, axis=-1, keepdims=True, initial=-math.inf)
    )
    # The threshold is at least -1, so lower scores have no weight anyway; their
    # squares could overflow.
    scores = ops.maximum((scores - largest) / 2, -1.0)
    threshold = ops.stop_gradient(_find_threshold(ops.stop_gradient(scores)))
    total, square = _sum_roots(scores, threshold)
    threshold = threshold + (square - 1) / (2 * ops.stop_gradient(total))
    return ops.square(ops.relu(scores - threshold))


def _find_threshold(scores: Tensor) -> Tensor:
    """Finds the threshold of scores whose maximum is 0: `(B, H, T, 1)`."""
    threshold = -ops.ones_like(scores[..., :1])
    for _ in range(STEPS):
        total, square = _sum_roots(scores, threshold)
        # Where the root of the sum, as a line, is 1.
        threshold = threshold + (square - ops.sqrt(square)) / total
    return threshold


def _sum_roots(scores: Tensor, threshold: Tensor) -> tuple[Tensor, Tensor]:
    """Sums the roots of the weights, and their squares."""
    roots = ops.relu(scores - threshold)
    return tuple(
        ops.sum(each, axis=-1, keepdims=True)
        for each in (roots, ops.square(roots))
    )
