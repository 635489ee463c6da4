"""Addition: its bins, and the digits of its numbers."""

import collections
import re

from datasets.text_tasks import TEXT_TASKS
from datasets.text_tasks.examples import training_examples
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
        paper=((47, 9), "Compute: 4 7 + 9 ? ", "The answer is 5 6."),
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


def test_numbers_have_no_leading_zeros_and_all_digits_come_up():
    task = TEXT_TASKS["addition"]()
    examples = training_examples(task, [1, 3], size=0)
    firsts = collections.defaultdict(collections.Counter)
    for index in range(8000):
        for number, digits in zip(
            examples.problem(index), examples.bins[index % 4], strict=True
        ):
            assert len(str(number)) == digits
            firsts[digits][str(number)[0]] += 1
    assert set(firsts[1]) == set("0123456789")
    assert set(firsts[3]) == set("123456789")
    assert min(firsts[3].values()) > 0.8 * 8000 / 9
