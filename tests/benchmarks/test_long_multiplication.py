"""Long multiplication by steps that a model may write."""

import itertools

import pytest

from datasets.text_tasks import TEXT_TASKS
from tests.benchmarks.modules import load

multiply = load("long_multiplication").multiply

PAIRS = [(403, 25), (7, 0), (999, 999), (10**29, 10**30 - 1), (1, 12345)]


def test_right_steps_make_right_products():
    task = TEXT_TASKS["multiply_add"]()
    asked = []

    def write(problems):
        asked.append(problems)
        words = [task.respond(problem) for problem in problems]
        return [
            int("".join(word[-1] for word in reversed(answer)))
            for answer in words
        ]

    products = [number * factor for number, factor in PAIRS]
    assert multiply(PAIRS, write) == products
    # A step for each digit of the longest factor, and none that grows.
    assert len(asked) == 30
    for problems in asked:
        for (added, digit, number), pair in zip(problems, PAIRS, strict=True):
            assert number == pair[0] and 0 <= digit <= 9
            assert len(str(added)) <= len(str(number))


@pytest.mark.parametrize("wrong_step", [0, 7, 29])
@pytest.mark.parametrize("turn", range(len(PAIRS)))
def test_one_wrong_step_makes_a_wrong_product(wrong_step, turn):
    steps = itertools.count()

    def write(problems):
        results = [added + digit * number for added, digit, number in problems]
        results[turn] += next(steps) == wrong_step
        return results

    found = multiply(PAIRS, write)
    right = [number * factor for number, factor in PAIRS]
    are_wrong = [a != b for a, b in zip(found, right, strict=True)]
    assert are_wrong == [number == turn for number in range(len(PAIRS))]
