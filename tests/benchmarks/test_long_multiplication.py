"""Long multiplication by steps that a model may write."""

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
