"""What training shows and a test asks for, against enumeration."""

import collections
import itertools
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
    AugmentedPositions,
    GridPositions,
    InterpolatedPositions,
    OrdinalPositions,
    RandomizedPositions,
    ShiftedPositions,
    WarpedPositions,
)

LENGTHS = {"train_lengths": [2, 4], "test_length": 6}


def counted(coverage, counts):
    """`{lower bound: count}` of the intervals that are not empty."""
    return {
        float(edge): int(count)
        for edge, count in zip(coverage.edges, counts, strict=False)
        if count
    }


def test_ordinal_positions_by_enumeration():
    with pytest.warns(
        UserWarning, match="test length of 6 .* 33.3% of its posit"
    ):
        coverage = position_coverage(OrdinalPositions(), **LENGTHS)
    assert counted(coverage, coverage.train_counts) == {0: 2, 1: 2, 2: 1, 3: 1}
    assert counted(coverage, coverage.test_counts) == dict.fromkeys(range(6), 1)
    assert coverage.edges.tolist() == list(range(7))
    assert coverage.unseen.tolist() == [False] * 4 + [True] * 2
    assert coverage.unseen_share == pytest.approx(2 / 6)


def test_ordinal_distances_by_enumeration():
    def distances(length):
        return collections.Counter(
            later - earlier
            for earlier, later in itertools.combinations_with_replacement(
                range(length), 2
            )
        )

    with pytest.warns(UserWarning, match="lengths up to 4: 14.3% of its dist"):
        coverage = distance_coverage(OrdinalPositions(), **LENGTHS)
    expected = distances(2) + distances(4)
    assert counted(coverage, coverage.train_counts) == expected
    assert counted(coverage, coverage.test_counts) == distances(6)
    # Distances 4 and 5: three pairs of 21.
    assert coverage.unseen_share == pytest.approx(3 / 21)


def test_phases_by_enumeration():
    phases, width, base = 8, 6, 100

    def counts(lengths):
        table = np.zeros((width // 2, phases), int)
        for length in lengths:
            for earlier in range(length):
                for later in range(earlier, length):
                    for pair in range(width // 2):
                        turn = (later - earlier) * base ** (-2 * pair / width)
                        share = math.fmod(turn, 2 * math.pi) / (2 * math.pi)
                        table[pair, int(share * phases)] += 1
        return table

    with pytest.warns(UserWarning, match="feature pairs 1, 2 are unseen"):
        coverage = phase_coverage(
            OrdinalPositions(),
            width=width,
            max_wavelength=base,
            num_phases=phases,
            train_lengths=[12],
            test_length=30,
        )
    np.testing.assert_array_equal(coverage.train_counts, counts([12]))
    np.testing.assert_array_equal(coverage.test_counts, counts([30]))
    np.testing.assert_allclose(
        coverage.edges, [2 * math.pi * part / phases for part in range(9)]
    )
    shares = coverage.unseen_share
    assert shares.shape == (3,)
    assert (shares > 0).tolist() == [False, True, True]


@pytest.mark.product
@pytest.mark.parametrize("resample", ["example", "batch"])
def test_randomized_positions_show_every_subset(resample):
    sampler = RandomizedPositions(max_position=5, resample=resample, seed=0)
    lengths = {"train_lengths": [3], "test_length": 5}
    positions = position_coverage(sampler, **lengths, draws=500)
    assert positions.train_counts.sum() == 3 * 500
    np.testing.assert_allclose(positions.train_counts, 300, rtol=0.2)
    distances = distance_coverage(sampler, **lengths, draws=500)
    # Every pair of the five is in 3 of the 10 subsets of three.
    np.testing.assert_allclose(
        distances.train_counts, [1500, 600, 450, 300, 150], rtol=0.25
    )
    assert distances.unseen_share == 0


@pytest.mark.parametrize(
    "sampler",
    [
        OrdinalPositions(),
        RandomizedPositions(max_position=10, evaluation="ordinal"),
        ShiftedPositions(max_shift=10),
    ],
)
def test_no_warning_within_the_trained_lengths(sampler):
    lengths = {"train_lengths": range(1, 11), "test_length": 10, "draws": 100}
    assert position_coverage(sampler, **lengths).unseen_share == 0
    assert distance_coverage(sampler, **lengths).unseen_share == 0
    assert not phase_coverage(sampler, width=8, **lengths).unseen.any()


def test_one_token_more_is_outside():
    sampler, lengths = OrdinalPositions(), {"train_lengths": [2000]}
    with pytest.warns(UserWarning, match="test length of 2001 is outside"):
        position_coverage(sampler, test_length=2001, **lengths)


def test_which_samplers_reach_longer_sequences():
    lengths = {"train_lengths": range(1, 11), "test_length": 30, "draws": 400}
    # Shifts show the positions, but not the distances.
    shifted = ShiftedPositions(max_shift=30)
    assert position_coverage(shifted, **lengths).unseen_share == 0
    with pytest.warns(UserWarning, match="ShiftedPositions .* distance"):
        distance_coverage(shifted, **lengths)
    randomized = RandomizedPositions(max_position=30, seed=0)
    assert distance_coverage(randomized, **lengths).unseen_share < 1e-3


def test_what_draws_miss_by_chance_is_not_outside():
    sampler = RandomizedPositions(max_position=1000, seed=0)
    lengths = {"train_lengths": [20], "test_length": 900}
    coverage = position_coverage(sampler, **lengths, draws=100)
    # Each of 2,000 draws misses 999 of 1,000 positions.
    assert coverage.unseen_share == pytest.approx(math.exp(-2), abs=0.03)


def test_fractions_need_warping():
    lengths = {"train_lengths": [10], "test_length": 30}
    interpolated = InterpolatedPositions(train_length=10)
    assert distance_coverage(interpolated, **lengths).unseen_share == 0
    with pytest.warns(UserWarning, match="InterpolatedPositions"):
        plain = distance_coverage(interpolated, **lengths, resolution=0.25)
    warped = WarpedPositions(train_length=10, seed=0)
    with warnings.catch_warnings(action="ignore"):
        fine = distance_coverage(warped, **lengths, resolution=0.25)
    assert fine.unseen_share < plain.unseen_share


def test_rounding_moves_no_position_to_another_interval():
    # In float32, 41 * (2 / 82) is below 1.
    coverage = position_coverage(
        InterpolatedPositions(train_length=2),
        train_lengths=[2],
        test_length=82,
    )
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


@pytest.mark.parametrize("quantity", ["positions", "phases"])
def test_picture(tmp_path, quantity):
    pytest.importorskip("matplotlib")
    lengths = {"train_lengths": [4], "test_length": 8}
    with pytest.warns(UserWarning, match="outside"):
        coverage = (
            phase_coverage(OrdinalPositions(), width=8, **lengths)
            if quantity == "phases"
            else position_coverage(OrdinalPositions(), **lengths)
        )
    path = plot_coverage(tmp_path / "coverage.png", coverage, title="Title")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [path]


def test_picture_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    coverage = position_coverage(
        OrdinalPositions(), train_lengths=[4], test_length=4
    )
    with pytest.raises(ImportError, match=r"install 'keras_lengen\[plots\]'"):
        plot_coverage(tmp_path / "coverage.png", coverage, title="Title")


WRONG = [
    (distance_coverage, {"train_lengths": []}, "one or more lengths"),
    (distance_coverage, {"train_lengths": [0]}, "train_lengths must be .* 0"),
    (distance_coverage, {"test_length": 2.5}, "test_length must be .* got 2.5"),
    (distance_coverage, {"draws": 0}, "draws must be .* got 0"),
    (distance_coverage, {"resolution": 0}, "resolution must .* above 0.* got"),
    (phase_coverage, {"width": 3}, "width is 3: choose an even number"),
    (phase_coverage, {"width": 0}, "width must be a positive integer.* got 0"),
    (phase_coverage, {"num_phases": 0}, "num_phases must be a positive integ"),
    (
        phase_coverage,
        {"max_wavelength": 1},
        "max_wavelength must be .* above 1",
    ),
    (
        distance_coverage,
        {"sampler": GridPositions(width=2)},
        "pass the samplers of its axes",
    ),
    (
        distance_coverage,
        {"sampler": RandomizedPositions(max_position=3)},
        "max_position is 3: raise max_position",
    ),
]


@pytest.mark.parametrize(("function", "changed", "message"), WRONG)
def test_bad_input(function, changed, message):
    needed = {"width": 8} if function is phase_coverage else {}
    arguments = {"draws": 10, **needed, **LENGTHS, **changed}
    sampler = arguments.pop("sampler", OrdinalPositions())
    with pytest.raises(ValueError, match=message):
        function(sampler, **arguments)
