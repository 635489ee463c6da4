import numpy as np
import pytest
from scipy import spatial

from keras_lengen.analysis import ActivationPlane, fit_activation_plane

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
    # Coordinates have mean 0, are uncorrelated, and have these deviations.
    points = plane.project(MIXED).reshape(-1, 2)
    np.testing.assert_allclose(
        np.cov(points.T, bias=True),
        np.diag(values[[-1, -2]]),
        atol=1e-4,
    )
    np.testing.assert_allclose(plane.points, points, atol=1e-5)


def test_about_the_wanted_share_of_the_same_distribution_is_outside():
    trained, others = np.random.default_rng(1).normal(size=(2, 3000, 4))
    for share_within in (0.9, 0.99):
        plane = fit_activation_plane(trained, share_within=share_within)
        points = plane.project(trained)
        tree = spatial.KDTree(points)
        nearest = tree.query(points, k=2)[0][:, 1]
        wanted = np.quantile(nearest, share_within)
        assert plane.radius == pytest.approx(wanted)
        found = tree.query(plane.project(others))[0] > plane.radius
        np.testing.assert_array_equal(plane.is_outside(others), found)
        share = 1 - share_within
        assert plane.share_outside(others) == pytest.approx(share, rel=0.3)


def test_a_region_may_have_a_hole():
    angles = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    ring = np.stack([2 * np.cos(angles), 2 * np.sin(angles)], axis=-1)
    plane = fit_activation_plane(ring @ np.eye(2, 5))
    assert plane.radius == pytest.approx(4 * np.sin(np.pi / 100))
    points = np.array([[0.0, 0], [0, 1.8], [0, 1.9], [1.5, 1.4], [0, 2.2]])
    found = plane.is_outside(points @ np.eye(2, 5))
    assert found.tolist() == [True, True, False, False, True]
    assert plane.share_outside(points @ np.eye(2, 5)) == 0.6
    # The direction across the plane does not count.
    assert not plane.is_outside(np.array([[0, 1.9, 9, 9, 9]])).any()


def test_points_by_hand():
    plane = ActivationPlane(
        mean=np.array([1.0, 0, 0]),
        directions=np.eye(3)[:2],
        explained=np.array([0.8, 0.2]),
        points=np.array([[0.0, 0], [5, 0]]),
        radius=1.5,
    )
    points = np.array([[2.4, 0, 9], [2.6, 0, 9], [4.6, 0, 9], [1, 1.4, 9]])
    assert plane.project(points)[0].tolist() == pytest.approx([1.4, 0])
    distances = plane.measure_distance(plane.project(points))
    np.testing.assert_allclose(distances, [1.4, 1.6, 1.4, 1.4])
    assert plane.is_outside(points).tolist() == [False, True, False, False]
    assert plane.share_outside(points) == 0.25


def test_equal_activations_differ_by_rounding():
    trained = np.repeat(MIXED[:10, 0], 5, axis=0).astype("float32")
    plane = fit_activation_plane(trained)
    assert plane.share_outside(trained * np.float32(1 + 1e-7)) == 0


LINE = np.outer(np.arange(9.0), [1, 2, 3])


def fit(activations, **arguments):
    return lambda: fit_activation_plane(activations, **arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (fit(LINE), "lie on a line"),
        (fit(LINE + 1000), "lie on a line"),
        (fit(np.ones((9, 4))), "are equal, or"),
        (fit(MIXED[0, :2]), "at least 3 vectors"),
        (fit(MIXED[0, 0]), r"floats \(..., M\); got"),
        (fit("x"), r"floats \(..., M\); got"),
        (fit(None), r"floats \(..., M\); got"),
        (fit([[1, 2], [3, 4]]), "got int64"),
        (fit(MIXED * np.nan), "NaN or infinity"),
        (fit(MIXED, share_within=1), "above 0 and below 1; got 1"),
        (fit(MIXED, share_within=0), "above 0 and below 1; got 0"),
        (
            lambda: fit(MIXED)().project(MIXED[..., :3]),
            "must have the width 6",
        ),
        (lambda: fit(MIXED)().share_outside(MIXED[:0]), "one vector or more"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
