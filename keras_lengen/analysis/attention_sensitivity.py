"""How attention changes from one token to the next, by the positions alone.

Idealised: every query and key has the same content, so that a score depends
on the distance alone. All numbers are float64, as neighbours differ little.

Reference: position index warping, equations 3 to 9.
"""

import numpy as np

from keras_lengen.arguments import (
    LARGEST_POSITION,
    check_boolean,
    check_callable,
    check_integer,
    check_number,
    check_numbers,
)
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    check_even,
    check_max_wavelength,
    frequencies,
)


def rope_raw_attention(distances, *, width=None, max_wavelength=10000):
    """Score of equal queries and keys, by distance, under `RoPE`.

    The mean over feature pairs `m` of `cos(x * w[m])` at distance `x`, with
    `w[m] = max_wavelength ** (-2 * m / width)`: the product of a rotated
    query and key all of whose pairs have length 1, divided by their number.
    For infinite width it is the integral of
    `cos(x * max_wavelength ** -u)` over `u` from 0 to 1.

    Args:
        distances: Numbers of any shape, in positions; the sign is ignored.
        width: Rotated features of a head, even; `None` for infinitely many.
        max_wavelength: Base of the geometric series of frequencies.

    Returns:
        float64 of the shape of `distances`, at most 1, which is the score at
        distance 0.

    Raises:
        ValueError: If `distances` are not numbers up to `2 ** 24`, `width` is
            odd or not positive, or `max_wavelength` not above 1.

    Example:

    >>> from keras_lengen.analysis import rope_raw_attention
    >>> rope_raw_attention([0, 10], width=64).round(3).tolist()
    [1.0, 0.658]
    >>> rope_raw_attention([0, 10]).round(3).tolist()
    [1.0, 0.682]

    Reference: Su et al., 2021, section 3.4.3, for `RoPE`.
    https://arxiv.org/abs/2104.09864
    """
    max_wavelength = check_max_wavelength(max_wavelength)
    width = check_integer(
        "width", width, optional=True, what="the rotated features of a head"
    )
    distances = np.abs(_check_distances(distances))
    if width is not None:
        check_even(width, "width")
        angles = distances[..., None] * frequencies(width, max_wavelength)
        return np.cos(angles).mean(axis=-1)
    # With t = x * max_wavelength ** -u, an integral of cos(t) / t.
    integrals = _cosine_integral(
        np.stack([distances, distances / max_wavelength])
    )
    return 1 - (integrals[0] - integrals[1]) / np.log(max_wavelength)


def alibi_raw_attention(distances, *, slope=0.5):
    """Score of queries and keys without content, by distance, under `ALiBi`.

    `-slope * x` at distance `x`.

    Args:
        distances: Numbers of any shape, in positions; the sign is ignored.
        slope: That of a head, above 0.

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
    slope = check_number("slope", slope, above=0)
    return -slope * np.abs(_check_distances(distances))


def attention_sensitivity(
    positions, *, raw_attention=rope_raw_attention, exponentiated=True
):
    """Change of the attention on a first token from one token to the next.

    `a(p[j + 1] - p[0]) - a(p[j] - p[0])` at token `j`, where `a(x)` is the
    exponential of the raw attention at distance `x`, the numerator of a
    softmax, or the raw attention itself. By symmetry it is also the change
    from one key to the one before it, seen by a query as far away.

    Args:
        positions: Positions of the tokens of a sequence, `(T,)` with `T` at
            least 2.
        raw_attention: Function of an array of distances.
        exponentiated: Whether the raw attention is exponentiated.

    Returns:
        float64 of shape `(T - 1,)`, negative where attention falls.

    Raises:
        ValueError: If `positions` are not the numbers of one sequence, or
            `raw_attention` returns something else than a number for each
            distance.

    Example:

    >>> from keras_lengen.analysis import attention_sensitivity
    >>> attention_sensitivity([0, 1, 2, 3]).round(3).tolist()
    [-0.07, -0.169, -0.184]
    """
    positions = _check_positions("positions", positions)
    check_callable("raw_attention", raw_attention)
    check_boolean("exponentiated", exponentiated)
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
    train_positions,
    test_positions,
    num_tokens,
    *,
    raw_attention=rope_raw_attention,
    exponentiated=True,
):
    """How foreign the end of a test sequence is to a trained model.

    The sum of `|train - test|` over the sensitivities between the last
    `num_tokens` tokens of a trained sequence and of a test sequence, one with
    the other from the end. The smaller, the better the positions of training
    prepare for those of the test, by which a skew of `WarpedPositions` can be
    chosen.

    Args:
        train_positions: Positions of a trained sequence, `(T,)`.
        test_positions: Positions of a test sequence, `(S,)`.
        num_tokens: Tokens to compare, at least 2, at most `T` and `S`.
        raw_attention: Function of an array of distances.
        exponentiated: Whether the raw attention is exponentiated.

    Returns:
        A float, at least 0.

    Raises:
        ValueError: If there are not so many tokens, or fewer than two, or an
            argument is wrong for `attention_sensitivity`.

    Differs from the paper: that does not say how wide the heads are, which
    indices are last, or whether attention is exponentiated. The reading here
    is the nearest one known.

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
    num_tokens = check_integer(
        "num_tokens",
        num_tokens,
        least=2,
        most=min(len(train_positions), len(test_positions)),
        what="at most the tokens of the shorter sequence",
    )
    train, test = (
        attention_sensitivity(
            positions,
            raw_attention=raw_attention,
            exponentiated=exponentiated,
        )[1 - num_tokens :]
        for positions in (train_positions, test_positions)
    )
    return float(np.abs(train - test).sum())


def _check_distances(distances):
    return check_numbers("distances", distances, most=LARGEST_POSITION)


def _check_positions(name, positions):
    """Returns positions of one sequence, or raises `ValueError`."""
    shape = "one for each token of a sequence, shape (T,) with T at least 2"
    positions = check_numbers(
        name, positions, shape=shape, axes=1, most=LARGEST_POSITION // 2
    )
    if len(positions) < 2:
        raise ValueError(f"{name} must be {shape}; got {len(positions)}.")
    return positions


def _cosine_integral(bounds):
    """Integral of `(1 - cos(t)) / t` from 0 to each bound, at least 0."""
    # By Gauss-Legendre in panels of a few radians of the longest integral,
    # exact to float64.
    panels = int(np.max(bounds, initial=0) // 8) + 1
    nodes, weights = np.polynomial.legendre.leggauss(16)
    shares = ((nodes + 1) / 2 + np.arange(panels)[:, None]).ravel() / panels
    weights = np.tile(weights / 2 / panels, panels)
    flat = np.ravel(bounds)
    integrals = np.empty(flat.shape)
    # A few at a time: the table of all bounds and nodes would be large.
    step = max(1, 2**20 // len(shares))
    for start in range(0, len(flat), step):
        part = flat[start : start + step, None]
        # 1 - cos(t), without cancellation where t is small.
        falls = 2 * np.sin(part * shares / 2) ** 2
        integrals[start : start + step] = falls @ (weights / shares)
    return integrals.reshape(np.shape(bounds))
