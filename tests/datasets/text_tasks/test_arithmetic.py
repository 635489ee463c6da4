"""Sums of several numbers and products: typed problems, factors, positions."""

import collections

import numpy as np

from datasets.text_tasks import TEXT_TASKS
from datasets.text_tasks.examples import training_examples
from tests.datasets.text_tasks.row import Row
from tests.datasets.text_tasks.solvers import read_runs, write_reversed

ZEROS = " + ^ 0 0"


def add(prompt):
    numbers, digits = read_runs(prompt)
    (width,) = {len(each) for each in digits}
    assert len(numbers) == 5
    return write_reversed(sum(numbers), width + 1)


def multiply(prompt):
    (*factor, number), digits = read_runs(prompt)
    product = int("".join(map(str, factor))) * number
    return write_reversed(product, len(digits[-1]) + len(factor))


def multiply_and_add(prompt):
    """Returns the totals of columns, from what the columns so far add up to."""
    (factor, number, other), (_, digits, added) = read_runs(prompt)
    assert len(added) == len(digits)
    words = []
    for place in range(len(digits) + 1):
        unit = 10**place
        carried = (factor * (number % unit) + other % unit) // unit
        column = factor * (number // unit % 10) + other // unit % 10
        words.append(f"t{column + carried}")
    return " ".join(words)


def total_columns(prompt):
    """Returns the totals of columns, from the convolution of the digits."""
    (*factor, _), (*_, digits) = read_runs(prompt)
    totals, carry = [], 0
    for column in [*np.convolve(factor, digits)[::-1].tolist(), 0]:
        totals.append(column + carry)
        carry = totals[-1] // 10
    return " ".join(f"t{total}" for total in totals)


ROWS = {
    "marked_sum": Row(
        golden=(
            (653, 49, 900),
            "$ ^ 6 5 3 + ^ 0 4 9 + ^ 9 0 0 + ^ 0 0 0 + ^ 0 0 0 = ",
            "2 0 6 1",
        ),
        solver=add,
        wrong=("1 x", "1 + 2"),
        positions=(("^65+^04+^90=951", [4, 3, 2, 1] * 3),),
        typed={
            "1+34 + 6": f"$ ^ 0 1 + ^ 3 4 + ^ 0 6{ZEROS * 2} = ",
            "1+1+1+1+1=": "$ ^ 1 + ^ 1 + ^ 1 + ^ 1 + ^ 1 = ",
        },
        untyped=("", "1 + 2", "1 + 2 + 3 + 4 + 5 + 6", "1 + 2 + "),
        described=(((9, 8, 7), "4 2", "9 + 8 + 7 = 24 (right)"),),
    ),
    "digit_multiplication": Row(
        golden=((7, 403), "$ x7 x7 x7 * ^ 4 0 3 = ", "1 2 8 2"),
        solver=multiply,
        wrong=("1 x1",),
        positions=(("x7x7*^43=103", [3, 2, 1, 4, 3, 2, 1]),),
        typed={"$ x7 x7 x7 * ^ 4 0 3 =": "$ x7 x7 x7 * ^ 4 0 3 = "},
        untyped=("", "12", "12 * 10", "10 * 10", "-1 * 2", "1 * 2 * 3"),
    ),
    "two_digit_multiplication": Row(
        golden=((25, 403), "$ y2 y2 y2 * x5 x5 x5 * ^ 4 0 3 = ", "5 7 0 0 1"),
        solver=multiply,
        positions=(("y2*x5*^7=571", [2, 1, 2, 1, 3, 2, 1]),),
        typed={"403 * 7 =": "$ y0 y0 y0 * x7 x7 x7 * ^ 4 0 3 = "},
        untyped=("120 * 100", "12 + 1"),
    ),
    "carried_multiplication": Row(
        golden=(
            (25, 403),
            "$ y2 y2 y2 * x5 x5 x5 * ^ 4 0 3 = ",
            "t15 t7 t20 t10 t1",
        ),
        solver=total_columns,
        wrong=("5 7 0 0 1", "t1 2"),
        different=(("t1", "t1 t0"),),
        positions=(("y2*x5*^7=t35t17t1", [2, 1, 2, 1, 3, 2, 1]),),
        typed={"4 0 3 * 25": "$ y2 y2 y2 * x5 x5 x5 * ^ 4 0 3 = "},
        described=(
            ((25, 7), "t35 t7 t1", "25 * 7 = 175 (wrong, it is 175)"),
            ((25, 7), "5 7 1", None),
        ),
    ),
    "multiply_add": Row(
        golden=(
            (59, 7, 403),
            "$ x7 x7 x7 * ^ 4 0 3 + ^ p0 p5 p9 = ",
            "t30 t8 t28 t2",
        ),
        solver=multiply_and_add,
        wrong=("0 8 8 2", "t1 2", "p1", "t100"),
        different=(("t1", "t1 t0"),),
        positions=(
            ("x7x7*^43+^p0p5=t26t30t3", [3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1]),
        ),
        typed={
            "7*403 + 59 =": "$ x7 x7 x7 * ^ 4 0 3 + ^ p0 p5 p9 = ",
            "$ x7 x7 * ^ 0 3 + ^ p5 p9 =": "$ x7 x7 * ^ 0 3 + ^ p5 p9 = ",
        },
        untyped=("12 * 10 + 1", "7 * 403", "7 * 403 +", "7 + 3"),
        described=(((59, 7, 3), "t30 t8 t0", "7 * 3 + 59 = 80 (right)"),),
    ),
}


def test_training_has_all_factors_equally_often():
    task = TEXT_TASKS["two_digit_multiplication"]()
    for structured in (0.0, 1.0):
        examples = training_examples(task, [3], size=0, structured=structured)
        factors = collections.Counter(
            examples.problem(index)[0] for index in range(4000)
        )
        assert set(factors) == set(range(100))
        if not structured:
            assert max(factors.values()) < 4 * min(factors.values())


def test_numbers_of_sums_have_the_bins_digits_or_fewer():
    task = TEXT_TASKS["marked_sum"]()
    rng = np.random.default_rng(0)
    orders = set()
    for place in task.bins_at(3):
        for number in range(200):
            problem = task.draw(rng, place, number)
            digits = [len(str(term)) for term in problem]
            assert len(digits) == len(place) and max(digits) == 3
            orders.add(tuple(digits))
    # The longest number may be any of them.
    assert {(3, 1, 2), (1, 2, 3), (2, 3, 1), (3, 3, 3)} < orders


def test_what_is_added_is_no_longer_than_the_number():
    # Long multiplication begins with 0 and adds numbers of all lengths.
    task = TEXT_TASKS["multiply_add"]()
    rng = np.random.default_rng(0)
    lengths = set()
    for _ in range(400):
        added, factor, number = task.draw(rng, (7,), 0)
        assert 0 <= factor <= 9 and len(str(number)) == 7
        lengths.add(len(str(added)))
    assert lengths == {*range(1, 8)}
