"""Two principal components of activations, and the region of trained ones."""

import dataclasses

import numpy as np

from keras_lengen.checks.arguments import Number
from keras_lengen.types import ArrayLike, BoolArray, FloatArray

CHUNK = 1000
"""Number of points whose distances to all trained ones are in memory."""


@dataclasses.dataclass(frozen=True)
class ActivationPlane:
    """The plane in which activations of trained lengths differ most.

    The trained region consists of the points of this plane that are at most
    `radius` away from a trained activation. It may have any shape, and holes.

    Attributes:
        mean: float64 `(M,)`. Mean of the trained activations.
        directions: float64 `(2, M)`. Orthonormal directions of the largest
            variance, in decreasing order. In each direction, the component with
            the largest absolute value is positive.
        explained: float64 `(2,)`. Fraction of the variance along each
            direction.
        points: float64 `(N, 2)`. Coordinates of the trained activations.
        radius: float. Radius of the trained region around each point.

    Example:

    >>> import numpy as np
    >>> from keras_lengen.analysis import fit_activation_plane
    >>> rng = np.random.default_rng(0)
    >>> trained, others = rng.normal(size=(2, 2000, 8))
    >>> plane = fit_activation_plane(trained)
    >>> print(f"{plane.share_outside(others):.2f}")
    0.01
    >>> plane.project(trained + 100).shape
    (2000, 2)
    >>> plane.share_outside(trained + 100)
    1.0
    """

    mean: FloatArray
    directions: FloatArray
    explained: FloatArray
    points: FloatArray
    radius: float

    def project(self, activations: ArrayLike) -> FloatArray:
        """Computes coordinates in the plane.

        Args:
            activations: Floats `(..., M)`.

        Returns:
            float64 `(..., 2)`, 0 at the mean.

        Raises:
            ValueError: If `activations` are not finite numbers of width `M`.
        """
        found = _check_activations(activations, least=0)
        if found.shape[-1] != len(self.mean):
            raise ValueError(
                f"activations must have the width {len(self.mean)} of those "
                f"that the plane was fitted to; got the shape {found.shape}."
            )
        return (found - self.mean) @ self.directions.T

    def is_outside(self, activations: ArrayLike) -> BoolArray:
        """Returns which activations lie outside of the trained region.

        Args:
            activations: Floats `(..., M)`.

        Returns:
            bool `(...)`.

        Raises:
            ValueError: As `project`.
        """
        return self.measure_distance(self.project(activations)) > self.radius

    def measure_distance(self, points: ArrayLike) -> FloatArray:
        """Computes how far points are from the nearest trained activation.

        Args:
            points: Floats `(..., 2)`, coordinates in the plane.

        Returns:
            float64 `(...)`.
        """
        points = np.asarray(points, np.float64)
        nearest = _measure_nearest(points.reshape(-1, 2), self.points)
        return nearest.reshape(points.shape[:-1])

    def share_outside(self, activations: ArrayLike) -> float:
        """Computes the fraction of activations outside of the trained region.

        Args:
            activations: Floats `(..., M)`, one vector or more.

        Returns:
            float from 0 to 1.

        Raises:
            ValueError: As `project`, or if there are no activations.
        """
        outside = self.is_outside(activations)
        if not outside.size:
            raise ValueError(
                "activations must have one vector or more; got the shape "
                f"{np.shape(activations)}."
            )
        return float(outside.mean())


def fit_activation_plane(
    activations: ArrayLike, *, share_within: float = 0.99
) -> ActivationPlane:
    """Fits a plane to activations of trained lengths (PCA).

    The plane goes through the mean of the activations, along the two directions
    in which their variance is largest. Activations of longer sequences are
    projected to the same plane. The radius of the trained region is chosen so
    that a fraction `share_within` of the trained activations has another
    trained activation within the radius. About `1 - share_within` of
    independent activations of the same distribution then lie outside.

    Time grows with the square of the number of activations: a few thousand
    suffice.

    Args:
        activations: Floats `(..., M)`, at least three vectors.
        share_within: float above 0 and below 1.

    Returns:
        An `ActivationPlane`.

    Raises:
        ValueError: If there are fewer than three vectors, they are not finite,
            or they all lie on a line.

    Example:

    >>> import numpy as np
    >>> from keras_lengen.analysis import fit_activation_plane
    >>> cross = np.array([[2, 0, 0], [-2, 0, 0], [0, 1, 0], [0, -1, 0]])
    >>> plane = fit_activation_plane(cross.astype("float32"))
    >>> plane.explained.tolist()
    [0.8, 0.2]
    >>> plane.project([[1.0, 1.0, 7.0]]).tolist()
    [[1.0, 1.0]]

    Reference: Ruoss et al., 2023, appendix B.3, which shows the plane of the
    longest trained length. The region is ours. https://arxiv.org/abs/2305.16843
    """
    share_within = Number(above=0, below=1).check("share_within", share_within)
    found = _check_activations(activations, least=3)
    vectors = found.reshape(-1, found.shape[-1])
    mean = vectors.mean(axis=0)
    _, values, directions = np.linalg.svd(vectors - mean, full_matrices=False)
    # Rounding makes activations on a line differ in a second direction.
    size = np.linalg.norm(vectors, axis=1).max()
    rounding = 10 * float(np.finfo(np.float32).eps * size)
    if len(values) < 2 or not values[1] > rounding * np.sqrt(len(vectors)):
        raise ValueError(
            "activations must differ in two directions or more; these are "
            "equal, or lie on a line."
        )
    directions = directions[:2]
    largest = np.argmax(np.abs(directions), axis=1)[:, None]
    directions = directions * np.sign(
        np.take_along_axis(directions, largest, axis=1)
    )
    variances = values**2
    points = (vectors - mean) @ directions.T
    nearest = _measure_nearest(points, points, skip_own=True)
    return ActivationPlane(
        mean,
        directions,
        variances[:2] / variances.sum(),
        points,
        # Equal activations differ by rounding.
        max(float(np.quantile(nearest, share_within)), rounding),
    )


def _measure_nearest(
    points: FloatArray, others: FloatArray, *, skip_own: bool = False
) -> FloatArray:
    """Returns the distance of each point to the nearest of others.

    Args:
        points: float64 `(N, 2)`.
        others: float64 `(K, 2)`.
        skip_own: bool. Whether `others` are the same points; a point is then
            not its own neighbor.
    """
    nearest = np.empty(len(points))
    for first in range(0, len(points), CHUNK):
        some = points[first : first + CHUNK]
        horizontal, vertical = (
            (some[:, None, axis] - others[:, axis]) ** 2 for axis in (0, 1)
        )
        squares = horizontal + vertical
        if skip_own:
            own = np.arange(len(some))
            squares[own, first + own] = np.inf
        nearest[first : first + CHUNK] = np.sqrt(squares.min(axis=1))
    return nearest


def _check_activations(activations: ArrayLike, least: int) -> FloatArray:
    try:
        found = np.asarray(activations)
    except (ValueError, TypeError):
        found = np.asarray(None)
    if found.dtype.kind != "f" or found.ndim < 2:
        raise ValueError(
            f"activations must be floats (..., M); got {found.dtype} of the "
            f"shape {found.shape}."
        )
    found = found.astype(np.float64)
    if not np.all(np.isfinite(found)):
        raise ValueError(
            "activations must be finite; got NaN or infinity among them."
        )
    number = int(np.prod(found.shape[:-1]))
    if number < least or found.shape[-1] < 2:
        raise ValueError(
            f"activations must be at least {least} vectors of width 2 or more; "
            f"got the shape {found.shape}."
        )
    return found
