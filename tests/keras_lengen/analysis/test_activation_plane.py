import numpy as np
import pytest
from scipy import spatial

from keras_lengen.analysis import fit_activation_plane
from tests.refusals import refuses

RNG = np.random.default_rng(0)
# Of different variance in every direction.
MIXED = RNG.normal(size=(50, 7, 6)) @ RNG.normal(size=(6, 6)) + RNG.normal(
    size=6
)


def test_plane_is_that_of_the_covariance_matrix():
    plane = fit_activation_plane(MIXED.astype("float32"))
    vectors = MIXED.astype("float32").astype("float64").reshape(-1, 6)
    covariance = np.cov(vectors.T, bias=True)
    values, directions = np.linalg.eigh(covariance)
    np.testing.assert_allclose(plane.mean, vectors.mean(0), atol=1e-9)
    np.testing.assert_allclose(plane.explained, values[[-1, -2]] / values.sum())
    for found, wanted in zip(
        plane.directions, directions.T[[-1, -2]], strict=True
    ):
        assert abs(found @ wanted) == pytest.approx(1)
        assert found[np.argmax(np.abs(found))] > 0
    points = plane.project(MIXED).reshape(-1, 2)
    wanted = (vectors - vectors.mean(0)) @ plane.directions.T
    np.testing.assert_allclose(points, wanted, atol=1e-4)
    np.testing.assert_allclose(plane.points, points, atol=1e-5)


def test_about_the_wanted_share_of_the_same_distribution_is_outside():
    trained, others = np.random.default_rng(1).normal(size=(2, 3000, 4))
    plane = fit_activation_plane(trained, share_within=0.9)
    points = plane.project(trained)
    tree = spatial.KDTree(points)
    nearest = tree.query(points, k=2)[0][:, 1]
    assert plane.radius == pytest.approx(np.quantile(nearest, 0.9))
    found = tree.query(plane.project(others))[0] > plane.radius
    np.testing.assert_array_equal(plane.is_outside(others), found)
    assert plane.share_outside(others) == pytest.approx(0.1, rel=0.3)


def test_equal_activations_differ_by_rounding():
    trained = np.repeat(MIXED[:10, 0], 5, axis=0).astype("float32")
    plane = fit_activation_plane(trained)
    assert plane.share_outside(trained * np.float32(1 + 1e-7)) == 0


LINE = np.outer(np.arange(9.0), [1, 2, 3])


@refuses(
    (LINE + 1000, "lie on a line"),
    (np.ones((9, 4)), "are equal, or"),
    (MIXED[0, :2], "at least 3 vectors"),
    (MIXED[0, 0], r"floats \(..., M\); got"),
    ([[1, 2], [3, 4]], "got int64"),
    (MIXED * np.nan, "NaN or infinity"),
)
def test_wrong_activations(activations):
    fit_activation_plane(activations)


def test_other_wrong_arguments():
    with pytest.raises(ValueError, match="above 0 and below 1; got 1"):
        fit_activation_plane(MIXED, share_within=1)
    plane = fit_activation_plane(MIXED)
    with pytest.raises(ValueError, match="must have the width 6"):
        plane.project(MIXED[..., :3])
    with pytest.raises(ValueError, match="one vector or more"):
        plane.share_outside(MIXED[:0])
