"""Curricula: which lengths come when, and how often."""

import collections
import itertools

import pytest
import tensorflow as tf

from datasets.curricula import (
    CURRICULA,
    Fixed,
    RegularIncrease,
    ReverseExponential,
    Uniform,
)
from datasets.tasks.batches import length_at
from tests.datasets.tasks.chi_square import assert_counts_follow

LENGTHS = (3, 5, 6, 10)


def drawn(curriculum, steps):
    """How often each length is drawn at `steps`."""
    at = tf.function(lambda step: length_at(7, step, LENGTHS, curriculum))
    return collections.Counter(
        int(at(tf.constant(step, tf.int64))) for step in steps
    )


def test_uniform():
    assert_counts_follow(
        drawn(Uniform(), range(2000)), dict.fromkeys(LENGTHS, 1 / 4)
    )


def test_fixed():
    assert drawn(Fixed(), range(50)) == {10: 50}


def test_longer_lengths_replace_shorter_ones():
    curriculum = RegularIncrease(every=10, shorter=False)
    found = [
        dict(drawn(curriculum, range(start, start + 10)))
        for start in (0, 10, 20, 30, 40, 1000)
    ]
    assert found == [{n: 10} for n in (3, 5, 6, 10, 10, 10)]


def test_longer_lengths_join_shorter_ones():
    curriculum = RegularIncrease(every=1000)
    for start, reached in ((0, 1), (1000, 2), (2000, 3), (3000, 4), (4000, 4)):
        assert_counts_follow(
            drawn(curriculum, range(start, start + 1000)),
            dict.fromkeys(LENGTHS[:reached], 1 / reached),
        )


def test_an_increase_may_skip_lengths():
    curriculum = RegularIncrease(every=1, amount=2, shorter=False)
    assert drawn(curriculum, range(9)) == {3: 1, 6: 8}


@pytest.mark.parametrize("tau", [0.5, 1.0, 1.3])
def test_reverse_exponential(tau):
    total = sum(tau**n for n in LENGTHS)
    assert_counts_follow(
        drawn(ReverseExponential(tau=tau), range(2000)),
        {n: tau**n / total for n in LENGTHS},
    )


def test_reverse_exponential_does_not_overflow():
    lengths = (1, 100_000)
    curriculum = ReverseExponential(tau=2.0)
    assert {
        int(length_at(0, step, lengths, curriculum)) for step in range(9)
    } == {100_000}


@pytest.mark.parametrize("name", CURRICULA)
def test_a_draw_is_a_function_of_seed_and_step(name):
    curriculum = CURRICULA[name]()
    steps = range(5000, 5020)
    assert drawn(curriculum, steps) == drawn(curriculum, steps)
    one = [
        [int(length_at(seed, step, LENGTHS, curriculum)) for step in steps]
        for seed in range(2)
    ]
    assert (one[0] == one[1]) == (name == "Fixed")
    assert all(a in LENGTHS for a in itertools.chain(*one))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: RegularIncrease(every=0),
            "every .* an integer .*; got 0",
        ),
        (
            lambda: RegularIncrease(amount=-1),
            "amount .*; got -1",
        ),
        (lambda: RegularIncrease(every=1.5), "an integer from 1 .*; got 1.5"),
        (lambda: RegularIncrease(every=True), "an integer .*; got True"),
        (lambda: RegularIncrease(shorter="no"), "True or False; got 'no'"),
        (lambda: ReverseExponential(tau=0.0), "a number from 0.001 .* 0.0"),
        (lambda: ReverseExponential(tau=float("nan")), "tau .* got nan"),
        (lambda: ReverseExponential(tau="x"), "tau .* got 'x'"),
    ],
)
def test_numbers_that_cannot_work(make, message):
    with pytest.raises(ValueError, match=message):
        make()
