"""Curricula: which lengths come when, and how often."""

import collections

import numpy as np
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
from tests.datasets.tasks.row import uniform

LENGTHS = (3, 5, 6, 10)


def drawn(curriculum, steps, lengths=LENGTHS, seed=7):
    """The length of each step, in a graph."""

    @tf.function
    def draw(steps):
        return tf.map_fn(
            lambda step: length_at(seed, step, lengths, curriculum),
            steps,
            fn_output_signature=tf.int32,
        )

    return draw(tf.constant(steps, tf.int64)).numpy().tolist()


def exponential(tau):
    total = sum(tau**length for length in LENGTHS)
    return {length: tau**length / total for length in LENGTHS}


@pytest.mark.parametrize(
    ("curriculum", "steps", "shares"),
    [
        (Uniform(), range(2000), uniform(LENGTHS)),
        (Fixed(), range(50), {10: 1.0}),
        # Longer lengths replace shorter ones, or join them.
        *(
            (RegularIncrease(every=10, shorter=False), range(n, n + 10), shares)
            for n, shares in (
                *((0, {3: 1.0}), (10, {5: 1.0}), (20, {6: 1.0})),
                *((30, {10: 1.0}), (40, {10: 1.0}), (1000, {10: 1.0})),
            )
        ),
        *(
            (
                RegularIncrease(every=1000),
                range(start, start + 1000),
                uniform(LENGTHS[:reached]),
            )
            for start, reached in ((0, 1), (1000, 2), (3000, 4), (4000, 4))
        ),
        *(
            (ReverseExponential(tau=tau), range(2000), exponential(tau))
            for tau in (0.5, 1.0, 1.3)
        ),
    ],
)
def test_lengths_follow_their_shares(curriculum, steps, shares):
    assert_counts_follow(collections.Counter(drawn(curriculum, steps)), shares)


def test_an_increase_may_skip_lengths():
    curriculum = RegularIncrease(every=1, amount=2, shorter=False)
    assert drawn(curriculum, range(9)) == [3] + [6] * 8


def test_reverse_exponential_does_not_overflow():
    found = drawn(ReverseExponential(tau=2.0), range(9), (1, 100_000))
    assert set(found) == {100_000}


@pytest.mark.parametrize("name", CURRICULA)
def test_a_draw_is_a_function_of_seed_and_step(name):
    curriculum, steps = CURRICULA[name](), range(5000, 5020)
    found = drawn(curriculum, steps)
    at_once = [length_at(7, step, LENGTHS, curriculum) for step in steps]
    np.testing.assert_array_equal(found, at_once)
    other = drawn(curriculum, steps, seed=8)
    assert (found == other) == (name == "Fixed")


@pytest.mark.parametrize(
    ("curriculum", "fields", "message"),
    [
        (RegularIncrease, {"every": 0}, "every .* an integer .*; got 0"),
        (RegularIncrease, {"amount": -1}, "amount .*; got -1"),
        (RegularIncrease, {"every": 1.5}, "an integer from 1 .*; got 1.5"),
        (RegularIncrease, {"every": True}, "an integer .*; got True"),
        (RegularIncrease, {"shorter": "no"}, "True or False; got 'no'"),
        (ReverseExponential, {"tau": 0.0}, "a number from 0.001 .* 0.0"),
        (ReverseExponential, {"tau": float("nan")}, "tau .* got nan"),
        (ReverseExponential, {"tau": "x"}, "tau .* got 'x'"),
    ],
)
def test_numbers_that_cannot_work(curriculum, fields, message):
    with pytest.raises(ValueError, match=message):
        curriculum(**fields)
