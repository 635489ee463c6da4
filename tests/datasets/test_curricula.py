import collections

import pytest
import tensorflow as tf

from datasets.curricula import (
    Fixed,
    RegularIncrease,
    ReverseExponential,
    Uniform,
)
from datasets.tasks.batches import length_at
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import uniform

LENGTHS = (3, 5, 6, 10)
POWERS_OF_TWO = {length: 2**length / 1128 for length in LENGTHS}


def drawn(curriculum, steps, lengths=LENGTHS):
    def draw(step):
        return length_at(7, step, lengths, curriculum)

    steps = tf.constant(steps, tf.int64)
    graph = tf.function(lambda: tf.map_fn(draw, steps, tf.int32))
    return graph().numpy().tolist()


@pytest.mark.parametrize(
    ("curriculum", "steps", "shares"),
    [
        (Uniform(), range(2000), uniform(LENGTHS)),
        (Fixed(), range(50), {10: 1.0}),
        (RegularIncrease(), range(1000), {3: 1.0}),
        (RegularIncrease(), range(1000, 2000), uniform((3, 5))),
        (RegularIncrease(), range(4000, 5000), uniform(LENGTHS)),
        (ReverseExponential(tau=2.0), range(2000), POWERS_OF_TWO),
    ],
)
def test_lengths_follow_their_shares(curriculum, steps, shares):
    assert_counts_follow(collections.Counter(drawn(curriculum, steps)), shares)


def test_longer_lengths_may_replace_shorter_ones_and_skip_some():
    curriculum = RegularIncrease(every=2, shorter=False)
    assert drawn(curriculum, range(9)) == [3, 3, 5, 5, 6, 6, 10, 10, 10]
    curriculum = RegularIncrease(every=1, amount=2, shorter=False)
    assert drawn(curriculum, range(9)) == [3] + [6] * 8


def test_reverse_exponential_does_not_overflow():
    found = drawn(ReverseExponential(tau=2.0), range(9), (1, 100_000))
    assert set(found) == {100_000}


@pytest.mark.parametrize(
    ("name", "value"),
    [("amount", -1), ("every", 1.5), ("every", True), ("shorter", "no")],
)
def test_values_that_cannot_work(name, value):
    with pytest.raises(ValueError, match=f"needs {name} .* got {value!r}"):
        RegularIncrease(**{name: value})
    with pytest.raises(ValueError, match=r"tau .* got nan"):
        ReverseExponential(tau=float("nan"))
