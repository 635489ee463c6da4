"""Cycle navigation: distribution of the last place, and its limits."""

import collections

import pytest

from datasets.tasks.cycle_navigation import CycleNavigation
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import REGULAR, Row, constants, strings


def walk(steps):
    place = 0
    for step in steps:
        if step == 2:
            place = 0 if place == 4 else place + 1
        if step == 0:
            place = 4 if place == 0 else place - 1
    return [place]


ROW = Row(
    published=(3, 5, REGULAR, 0.2),
    oracle=walk,
    outcomes=strings(3),
    floor_rules=constants(5),
)


@pytest.mark.parametrize(
    ("length", "ninths"),
    [
        (1, {4: 3, 0: 3, 1: 3}),
        (2, {3: 1, 4: 2, 0: 3, 1: 2, 2: 1}),
        (500, dict.fromkeys(range(5), 9 / 5)),
    ],
)
def test_last_place(length, ninths):
    targets = CycleNavigation().sample((1, 2), 20_000, length)["targets"]
    counts = collections.Counter(targets.numpy().ravel().tolist())
    probabilities = {place: ninth / 9 for place, ninth in ninths.items()}
    assert_counts_follow(counts, probabilities)


def test_tokens_mean_back_stay_and_on():
    batch = CycleNavigation().sample((1, 2), 100, 1)
    answers = dict(
        zip(
            batch["inputs"].numpy().ravel().tolist(),
            batch["targets"].numpy().ravel().tolist(),
            strict=True,
        )
    )
    assert answers == {0: 4, 1: 0, 2: 1}


def test_floor_by_hand():
    task = CycleNavigation()
    assert task.floor_accuracy(1) == pytest.approx(1 / 3)
    # Three steps return by standing still or in one of 3! orders: 7 of 27.
    assert task.floor_accuracy(3) == pytest.approx(7 / 27)
    assert task.floor_accuracy(500) == pytest.approx(1 / 5)
