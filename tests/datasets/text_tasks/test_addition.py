"""Addition: its bins, and the digits of its numbers."""

import re

import numpy as np

from datasets.text_tasks import TEXT_TASKS
from datasets.text_tasks.symbols import draw_number
from tests.datasets.text_tasks.row import Row
from tests.datasets.text_tasks.solvers import read_number, write_digits


def add(prompt):
    first, second = re.fullmatch(r"Compute (.+) \+ (.+) \?", prompt).groups()
    total = read_number(first) + read_number(second)
    return f"The answer is {write_digits(total)}."


ROWS = {
    "addition": Row(
        golden=((47, 9), "Compute 4 7 + 9 ? ", "The answer is 5 6."),
        steps=(
            "in 7, 9 comp 7 + 9 + carry = 1 6 + 0 = 1 6 out 6 "
            "[ carry: 1 ] re 4 + 0 # "
            "in 4, 0 comp 4 + 0 + carry = 4 + 1 = 5 out 5 "
            "[ carry: 0 ] re  + "
        ),
        solver=add,
        wrong=("The answer is .", "The answer is 1 x.", "The answer is 1"),
        same=(("The answer is 05.", "The  answer is 5 ."),),
    )
}


def test_addition_has_the_published_bins():
    task = TEXT_TASKS["addition"]()
    assert len(task.bins(task.trained_lengths)) == 64
    tested = [p for n in task.tested_lengths for p in task.bins_at(n)]
    assert len(tested) == len(set(tested)) == 192


def test_numbers_are_all_of_some_digits():
    rng = np.random.default_rng(0)
    for digits, expected in ((1, range(10)), (2, range(10, 100))):
        drawn = {draw_number(rng, digits) for _ in range(2000)}
        assert drawn == {*expected}
