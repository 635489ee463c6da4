"""What training shows and a test asks for, against enumeration."""

import math
import sys
import warnings

import numpy as np
import pytest

from keras_lengen.analysis import (
    distance_coverage,
    phase_coverage,
    plot_coverage,
    position_coverage,
)
from keras_lengen.layers import (
    AbacusPositions,
    AugmentedPositions,
    GridPositions,
    InterpolatedPositions,
    OrdinalPositions,
    RandomizedPositions,
)
from tests.refusals import refuses

WIDE = {"width": 8}
LENGTHS = {"train_lengths": [2, 4], "test_length": 6}


def test_ordinal_positions_and_distances_are_counted():
    with pytest.warns(UserWarning, match="length of 6 .* 33.3% of its posit"):
        coverage = position_coverage(OrdinalPositions(), **LENGTHS)
    assert coverage.train_counts.tolist() == [2, 2, 1, 1, 0, 0]
    assert coverage.test_counts.tolist() == [1] * 6
    assert coverage.edges.tolist() == list(range(7))
    assert coverage.unseen.tolist() == [False] * 4 + [True] * 2
    assert coverage.unseen_share == pytest.approx(2 / 6)
    with pytest.warns(UserWarning, match="lengths up to 4: 14.3% of its dist"):
        coverage = distance_coverage(OrdinalPositions(), **LENGTHS)
    assert coverage.train_counts.tolist() == [2 + 4, 1 + 3, 2, 1, 0, 0]
    assert coverage.test_counts.tolist() == [6, 5, 4, 3, 2, 1]
    # Distances 4 and 5: three pairs of 21.
    assert coverage.unseen_share == pytest.approx(3 / 21)


def count_phases(length, width=6, base=100):
    """Pairs of tokens, by the eighth of the circle of each feature pair."""
    table = np.zeros((width // 2, 8), int)
    for pair, distance in np.ndindex(width // 2, length):
        turn = distance * base ** (-2 * pair / width)
        share = math.fmod(turn, 2 * math.pi) / (2 * math.pi)
        table[pair, int(share * 8)] += length - distance
    return table


def test_phases_are_counted():
    with pytest.warns(UserWarning, match="feature pairs 1, 2 are unseen"):
        coverage = phase_coverage(
            OrdinalPositions(),
            **{"width": 6, "max_wavelength": 100, "num_phases": 8},
            **{"train_lengths": [12], "test_length": 30},
        )
    np.testing.assert_array_equal(coverage.train_counts, count_phases(12))
    np.testing.assert_array_equal(coverage.test_counts, count_phases(30))
    np.testing.assert_allclose(coverage.edges, np.arange(9) * math.pi / 4)
    assert (coverage.unseen_share > 0).tolist() == [False, True, True]


def test_what_draws_miss_by_chance_is_not_outside():
    sampler = RandomizedPositions(max_position=1000, seed=0)
    lengths = {"train_lengths": [20], "test_length": 900}
    coverage = position_coverage(sampler, **lengths, draws=100)
    # Each of 2,000 draws misses 999 of 1,000 positions.
    assert coverage.unseen_share == pytest.approx(math.exp(-2), abs=0.03)


def test_fractions_are_counted_by_intervals():
    lengths = {"train_lengths": [10], "test_length": 30}
    interpolated = InterpolatedPositions(train_length=10)
    assert distance_coverage(interpolated, **lengths).unseen_share == 0
    with pytest.warns(UserWarning, match="InterpolatedPositions"):
        distance_coverage(interpolated, **lengths, resolution=0.25)
    # In float32, 41 * (2 / 82) is below 1.
    halves = InterpolatedPositions(train_length=2)
    coverage = position_coverage(halves, train_lengths=[2], test_length=82)
    assert coverage.test_counts.tolist() == [41, 41]


def test_negative_positions():
    sampler = AugmentedPositions(normalize=True, seed=0)
    coverage = position_coverage(sampler, train_lengths=[8], test_length=8)
    assert coverage.edges[0] < -5
    assert coverage.test_counts.sum() == 8 * 1000
    assert coverage.unseen_share == 0


@pytest.mark.parametrize("resample", ["batch", "example"])
def test_as_many_draws_as_asked_for(resample):
    sampler = RandomizedPositions(max_position=4, resample=resample)
    lengths = {"train_lengths": [1, 2, 4], "test_length": 4}
    with warnings.catch_warnings(action="ignore"):
        coverage = position_coverage(sampler, **lengths, draws=5)
    assert coverage.train_counts.sum() == 1 + 2 + 4 + 1 + 2
    assert coverage.test_counts.tolist() == [5] * 4


@pytest.mark.parametrize(
    ("function", "options"), [(position_coverage, {}), (phase_coverage, WIDE)]
)
def test_picture(function, options, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    with pytest.warns(UserWarning, match="outside"):
        coverage = function(OrdinalPositions(), **LENGTHS, **options)
    path = plot_coverage(tmp_path / "coverage.png", coverage, title="Title")
    assert path.read_bytes().startswith(b"\x89PNG")
    for wrong, words in (
        ({"path": tmp_path}, "path must be the path of a file"),
        ({"path": tmp_path / "none" / "a.png"}, "in a folder that exists"),
        ({"coverage": None}, "coverage must be"),
        ({"title": 3}, "title must be a string"),
    ):
        right = {"path": path, "coverage": coverage, "title": "Title"}
        with pytest.raises(ValueError, match=words):
            plot_coverage(**{**right, **wrong})
    assert [*tmp_path.iterdir()] == [path]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"install 'keras_lengen\[plots\]'"):
        plot_coverage(path, coverage, title="Title")


def test_wrong_resolutions():
    for resolution, message in ((0, "above 0.* got 0"), (1e-30, "makes more")):
        with pytest.raises(ValueError, match=f"resolution.* {message}"):
            distance_coverage(
                OrdinalPositions(), **LENGTHS, resolution=resolution
            )


@refuses(
    ({"train_lengths": 3}, "one or more lengths; got 3"),
    ({"train_lengths": [0]}, "train_lengths must be .* 0"),
    ({"test_length": 2.5}, "test_length must be .* got 2.5"),
    ({"draws": 0}, "draws must be .* got 0"),
    ({"sampler": GridPositions(width=2)}, "the samplers of its axes"),
    ({"sampler": AbacusPositions(digits=[1])}, "reads token ids"),
    ({"width": 3}, "width is 3: choose an even number"),
    ({"num_phases": 0}, "num_phases must be a positive integ"),
    ({"max_wavelength": 1}, "max_wavelength must be .* above 1"),
)
def test_wrong_arguments(changed):
    right = {"sampler": OrdinalPositions(), **WIDE, **LENGTHS}
    phase_coverage(**{**right, **changed})
