"""Distance, divergence and strength of the attention of heads."""

import numpy as np

from keras_lengen.checks.arguments import described
from keras_lengen.types import Array, ArrayLike, BoolArray, FloatArray

TOLERANCE = 1e-3
"""Largest deviation of a row's sum from 1; float16 reaches 2e-4."""


def attention_distance(
    weights: ArrayLike, *, queries: ArrayLike | None = None
) -> FloatArray:
    """Computes the mean distance of the tokens that heads attend to.

    This is the mean over queries of the sum of `weight * |query - key|`, where
    `query` and `key` are the indices of two tokens.

    Args:
        weights: Attention weights `(B, H, T, T)`, as `attention_weights`
            returns them.
        queries: bool `(B, T)`. Queries to include; `None`: all.

    Returns:
        float64 `(H,)`, in tokens.

    Raises:
        ValueError: If the rows of `weights` are not probabilities, if there
            are other keys than queries, or if no query counts.

    Example:

    >>> import numpy as np
    >>> from keras_lengen.analysis import attention_distance
    >>> before = np.eye(4, k=-1)[None, None, 1:]
    >>> weights = np.concatenate([np.eye(4)[None, None, :1], before], axis=2)
    >>> attention_distance(weights).tolist()
    [0.75]
    """
    weights = _check_weights("weights", weights)
    tokens = weights.shape[-1]
    if weights.shape[-2] != tokens:
        raise ValueError(
            f"weights must have as many keys as queries; got the shape "
            f"{weights.shape}."
        )
    counted = _check_queries(queries, weights)
    places = np.arange(tokens)
    distances = np.abs(places[:, None] - places)
    by_query = np.einsum("bhts,ts->bht", weights, distances)
    return _average(by_query, counted[:, None], axis=(0, 2))


def attention_divergence(
    weights: ArrayLike,
    other_weights: ArrayLike,
    *,
    queries: ArrayLike | None = None,
) -> FloatArray:
    """Computes how much the attention of the heads of two layers differs.

    This is the mean over queries of the Jensen-Shannon divergence between the
    attention weights of a head of each layer: 0 if both heads attend equally,
    and `ln(2)` if they attend to different tokens.

    Args:
        weights: Attention weights `(B, H, T, S)`, as `attention_weights`
            returns them.
        other_weights: Weights `(B, G, T, S)` of the other layer, which may be
            one of another model, for the same tokens.
        queries: bool `(B, T)`. Queries to include; `None`: all.

    Returns:
        float64 `(H, G)`, in nats, from 0 to `ln(2)`.

    Raises:
        ValueError: If rows are not probabilities, if the shapes do not match,
            or if no query counts.

    Example:

    >>> import numpy as np
    >>> from keras_lengen.analysis import attention_divergence
    >>> first, last = np.eye(2).reshape(2, 1, 1, 1, 2)
    >>> attention_divergence(first, last).round(3).tolist()
    [[0.693]]

    Reference: Kazemnejad et al., 2023, section 5.2.
    https://arxiv.org/abs/2305.19466
    """
    weights = _check_weights("weights", weights)
    other_weights = _check_weights("other_weights", other_weights)
    first, second = (np.delete(w.shape, 1) for w in (weights, other_weights))
    if not np.array_equal(first, second):
        raise ValueError(
            f"other_weights must be of the same tokens as weights, "
            f"{weights.shape}; got the shape {other_weights.shape}."
        )
    counted = _check_queries(queries, weights)
    entropies = [_entropy(w) for w in (weights, other_weights)]
    # One head at a time: all pairs would take H times the memory.
    rows = []
    for head in range(weights.shape[1]):
        middle = (weights[:, head : head + 1] + other_weights) / 2
        by_query = (
            _entropy(middle)
            - (entropies[0][:, head : head + 1] + entropies[1]) / 2
        )
        rows.append(_average(by_query, counted[:, None], axis=(0, 2)))
    return np.clip(rows, 0, np.log(2))


def attention_maximum(weights: ArrayLike) -> Array:
    """Computes the largest attention weight of all heads.

    Args:
        weights: Attention weights `(B, H, T, S)`, as `attention_weights`
            returns them; those of `GeometricAttention` need not sum to 1.

    Returns:
        `(B, T, S)` of the same dtype, the maximum over heads.

    Raises:
        ValueError: If `weights` are not finite floats of this shape and of at
            least 0, or there are none.

    Example:

    >>> import numpy as np
    >>> from keras_lengen.analysis import attention_maximum
    >>> heads = np.array([[[[0.9, 0.1]], [[0.3, 0.7]]]])
    >>> attention_maximum(heads).tolist()
    [[[0.9, 0.7]]]

    Reference: Ruoss et al., 2023, appendix B.3.
    https://arxiv.org/abs/2305.16843
    """
    found = _as_weights("weights", weights)
    if not (np.isfinite(found) & (found >= 0)).all():
        raise ValueError(
            "weights must be finite and at least 0; got numbers from "
            f"{found.min()} to {found.max()}."
        )
    return found.max(axis=1)


def _entropy(weights: FloatArray) -> FloatArray:
    """Returns the entropy of each row, in nats."""
    logarithms = np.log(np.where(weights > 0, weights, 1))
    return -np.sum(weights * logarithms, axis=-1)


def _average(
    values: FloatArray, counted: BoolArray, axis: tuple[int, ...]
) -> FloatArray:
    return np.mean(
        values, axis=axis, where=np.broadcast_to(counted, values.shape)
    )


def _as_weights(name: str, weights: ArrayLike) -> Array:
    """Returns an array `(B, H, T, S)` of floats, or raises `ValueError`."""
    wanted = "floats (B, H, T, S)"
    try:
        found = np.asarray(weights)
    except (ValueError, TypeError):
        # Nested lists of unequal lengths.
        raise ValueError(
            f"{name} must be {wanted}; got {described(weights)}."
        ) from None
    if found.ndim != 4 or found.dtype.kind != "f" or not found.size:
        raise ValueError(
            f"{name} must be {wanted}; got {found.dtype} of the shape "
            f"{found.shape}{', which holds none' * (not found.size)}."
        )
    return found


def _check_weights(name: str, weights: ArrayLike) -> FloatArray:
    found = _as_weights(name, weights).astype(np.float64)
    sums = found.sum(axis=-1)
    if not (np.all(found >= 0) and np.all(np.abs(sums - 1) <= TOLERANCE)):
        raise ValueError(
            f"{name} must be 0 or more, and the weights of each query sum to "
            "1; weights of GeometricAttention do not."
        )
    return found / sums[..., None]


def _check_queries(queries: ArrayLike | None, weights: FloatArray) -> BoolArray:
    shape = (weights.shape[0], weights.shape[2])
    if queries is None:
        return np.ones(shape, bool)
    found = np.asarray(queries)
    if found.dtype != bool or found.shape != shape or not found.any():
        raise ValueError(
            f"queries must be bool {shape}, not all of them False; got "
            f"{found.dtype} of the shape {found.shape}."
        )
    return found
