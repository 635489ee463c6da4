"""How attention changes from one token to the next because of positions.

The analysis is idealised: all queries and keys have the same content, so a
score depends on the distance only. All numbers are float64, because adjacent
tokens differ little.

Reference: position index warping, equations 3 to 9.
"""

from collections.abc import Callable

import numpy as np

from keras_lengen.checks.arguments import (
    LARGEST_POSITION,
    Boolean,
    Function,
    Integer,
    Number,
    Numbers,
    Optional,
)
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    MaxWavelength,
    check_even,
    frequencies,
)
from keras_lengen.types import ArrayLike, FloatArray


def rope_raw_attention(
    distances: ArrayLike,
    *,
    width: int | None = None,
    max_wavelength: float = 10000,
) -> FloatArray:
    """Computes the score of equal queries and keys under `RoPE`.

    The score at distance `x` is the mean of `cos(x * w[m])` over feature pairs
    `m`, with `w[m] = max_wavelength ** (-2 * m / width)`. This is the dot
    product of a rotated query and key whose feature pairs all have length 1,
    divided by the number of pairs. For infinite width, the score is the
    integral of `cos(x * max_wavelength ** -u)` over `u` from 0 to 1.

    Args:
        distances: Numbers of any shape, in positions, with absolute values up
            to `2 ** 24`; the sign is ignored.
        width: int, even. Number of rotated features of a head; `None`:
            infinitely many.
        max_wavelength: float, above 1. Base of the geometric series of
            frequencies.

    Returns:
        float64 of the shape of `distances`, at most 1, the score at distance
        0.

    Raises:
        ValueError: If `distances` are not numbers up to `2 ** 24`, `width` is
            odd or not positive, or `max_wavelength` is not above 1.

    Example:

    >>> from keras_lengen.analysis import rope_raw_attention
    >>> rope_raw_attention([0, 10], width=64).round(3).tolist()
    [1.0, 0.658]
    >>> rope_raw_attention([0, 10]).round(3).tolist()
    [1.0, 0.682]

    Reference: Su et al., 2021, section 3.4.3, for `RoPE`.
    https://arxiv.org/abs/2104.09864
    """
    max_wavelength = MaxWavelength().check("max_wavelength", max_wavelength)
    width = Optional(Integer(what="the rotated features of a head")).check(
        "width", width
    )
    distances = np.abs(_check_distances(distances))
    if width is not None:
        check_even(width, "width")
        angles = distances[..., None] * frequencies(width, max_wavelength)
        return np.cos(angles).mean(axis=-1)
    # The substitution t = x * max_wavelength ** -u gives an integral of
    # cos(t) / t.
    integrals = _integrate_cosine(
        np.stack([distances, distances / max_wavelength])
    )
    return 1 - (integrals[0] - integrals[1]) / np.log(max_wavelength)


def alibi_raw_attention(
    distances: ArrayLike, *, slope: float = 0.5
) -> FloatArray:
    """Computes the score of queries and keys without content under `ALiBi`.

    The score at distance `x` is `-slope * x`.

    Args:
        distances: Numbers of any shape, in positions, with absolute values up
            to `2 ** 24`; the sign is ignored.
        slope: float, above 0. Slope of one head.

    Returns:
        float64 of the shape of `distances`, at most 0.

    Raises:
        ValueError: If `distances` are not numbers up to `2 ** 24`, or `slope`
            is not above 0.

    Example:

    >>> from keras_lengen.analysis import alibi_raw_attention
    >>> alibi_raw_attention([0, 1, 2]).tolist()
    [-0.0, -0.5, -1.0]

    Reference: Press et al., 2022, section 3. https://arxiv.org/abs/2108.12409
    """
    slope = Number(above=0).check("slope", slope)
    return -slope * np.abs(_check_distances(distances))


def attention_sensitivity(
    positions: ArrayLike,
    *,
    raw_attention: Callable[[FloatArray], ArrayLike] = rope_raw_attention,
    exponentiated: bool = True,
) -> FloatArray:
    """Computes how attention to the first token changes from token to token.

    The sensitivity at token `j` is `a(p[j + 1] - p[0]) - a(p[j] - p[0])`,
    where `p` are the positions and `a(x)` is the exponential of the raw
    attention at distance `x`, which is the numerator of a softmax, or the raw
    attention itself. By symmetry, it is also the change from one key to the
    previous key for a query at the same distances.

    Args:
        positions: Numbers `(T,)` with `T` at least 2. Positions of the tokens
            of one sequence.
        raw_attention: Function that maps an array of distances to an array of
            scores of the same shape.
        exponentiated: bool. Whether to exponentiate the raw attention.

    Returns:
        float64 `(T - 1,)`, negative where attention decreases.

    Raises:
        ValueError: If `positions` are not the numbers of one sequence, or
            `raw_attention` does not return one number for each distance.

    Example:

    >>> from keras_lengen.analysis import attention_sensitivity
    >>> attention_sensitivity([0, 1, 2, 3]).round(3).tolist()
    [-0.07, -0.169, -0.184]
    """
    positions = _check_positions("positions", positions)
    Function().check("raw_attention", raw_attention)
    Boolean().check("exponentiated", exponentiated)
    distances = positions - positions[0]
    attention = np.asarray(raw_attention(distances))
    if attention.shape != distances.shape or attention.dtype.kind not in "iuf":
        raise ValueError(
            "raw_attention must return one number for each distance; got "
            f"{attention.dtype} of shape {attention.shape} for "
            f"{len(distances)} distances."
        )
    return np.diff(np.exp(attention) if exponentiated else attention)


def total_difference(
    train_positions: ArrayLike,
    test_positions: ArrayLike,
    num_tokens: int,
    *,
    raw_attention: Callable[[FloatArray], ArrayLike] = rope_raw_attention,
    exponentiated: bool = True,
) -> float:
    """Measures how much the end of a test sequence differs from training.

    The result is the sum of `|train - test|` over the attention sensitivities
    between the last `num_tokens` tokens of a training sequence and of a test
    sequence, aligned at the end. A smaller value means that the positions of
    training prepare better for those of the test. The measure can be used to
    choose a skew of `WarpedPositions`.

    Args:
        train_positions: Numbers `(T,)`. Positions of a training sequence.
        test_positions: Numbers `(S,)`. Positions of a test sequence.
        num_tokens: int from 2 to `min(T, S)`. Number of tokens to compare.
        raw_attention: Function that maps an array of distances to an array of
            scores of the same shape.
        exponentiated: bool. Whether to exponentiate the raw attention.

    Returns:
        float, at least 0.

    Raises:
        ValueError: If `num_tokens` is out of range, or an argument is invalid
            for `attention_sensitivity`.

    Differs from the paper: the paper does not state the width of the heads,
    which tokens are the last ones, or whether attention is exponentiated. This
    function uses the choices that come nearest to the published numbers.

    Example:

    >>> import numpy as np
    >>> from keras_lengen.analysis import total_difference
    >>> ordinal, interpolated = np.arange(20), np.arange(40) / 2
    >>> round(total_difference(ordinal, interpolated, 10), 3)
    0.099
    >>> round(total_difference(np.sqrt(20 * ordinal), interpolated, 10), 3)
    0.017
    """
    train_positions = _check_positions("train_positions", train_positions)
    test_positions = _check_positions("test_positions", test_positions)
    num_tokens = Integer(
        2,
        min(len(train_positions), len(test_positions)),
        what="at most the tokens of the shorter sequence",
    ).check("num_tokens", num_tokens)
    train, test = (
        attention_sensitivity(
            positions,
            raw_attention=raw_attention,
            exponentiated=exponentiated,
        )[1 - num_tokens :]
        for positions in (train_positions, test_positions)
    )
    return float(np.abs(train - test).sum())


def _check_distances(distances: ArrayLike) -> FloatArray:
    return Numbers(most=LARGEST_POSITION).check("distances", distances)


def _check_positions(name: str, positions: ArrayLike) -> FloatArray:
    """Returns positions of one sequence, or raises `ValueError`."""
    shape = "one for each token of a sequence, shape (T,) with T at least 2"
    positions = Numbers(shape, axes=1, most=LARGEST_POSITION // 2).check(
        name, positions
    )
    if len(positions) < 2:
        raise ValueError(f"{name} must be {shape}; got {len(positions)}.")
    return positions


def _integrate_cosine(bounds: FloatArray) -> FloatArray:
    """Integrates `(1 - cos(t)) / t` from 0 to each bound, which is >= 0."""
    # Gauss-Legendre quadrature in panels of at most 8 radians, which is exact
    # to the precision of float64.
    panels = int(np.max(bounds, initial=0) // 8) + 1
    nodes, weights = np.polynomial.legendre.leggauss(16)
    shares = ((nodes + 1) / 2 + np.arange(panels)[:, None]).ravel() / panels
    weights = np.tile(weights / 2 / panels, panels)
    flat = np.ravel(bounds)
    integrals = np.empty(flat.shape)
    # A few bounds at a time limit the memory for all pairs of bounds and nodes.
    size = max(1, 2**20 // len(shares))
    for start in range(0, len(flat), size):
        part = flat[start : start + size, None]
        # 1 - cos(t), without cancellation where t is small.
        values = 2 * np.sin(part * shares / 2) ** 2
        integrals[start : start + size] = values @ (weights / shares)
    return integrals.reshape(np.shape(bounds))
