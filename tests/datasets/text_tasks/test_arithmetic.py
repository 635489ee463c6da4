import numpy as np
import pytest

from datasets.text_tasks import TEXT_TASKS
from datasets.text_tasks.examples import training_examples
from tests.datasets.text_tasks.row import Row
from tests.datasets.text_tasks.solvers import add, multiply, read_runs


def total_columns(factor, digits, added=(0,)):
    """Returns the totals of columns, from the convolution of the digits."""
    columns = np.polyadd(np.convolve(factor, digits), added)[::-1]
    totals, carry = [], 0
    for column in [*columns.tolist(), 0]:
        totals.append(column + carry)
        carry = totals[-1] // 10
    return " ".join(f"t{total}" for total in totals)


def multiply_by_columns(prompt):
    *factor, digits = read_runs(prompt)[1]
    return total_columns(np.ravel(factor), digits)


def multiply_and_add(prompt):
    return total_columns(*read_runs(prompt)[1])


ROWS = {
    "marked_sum": Row(
        golden=((6, 9, 9), "$ ^ 6 + ^ 9 + ^ 9 + ^ 0 + ^ 0 = ", "4 2"),
        solver=add,
        typed={"1+34 + 6": "$ ^ 0 1 + ^ 3 4 + ^ 0 6 + ^ 0 0 + ^ 0 0 = "},
        untyped=("", "1 + 2", "1 + 2 + 3 + 4 + 5 + 6", "1 + 2 + "),
    ),
    "digit_multiplication": Row(
        golden=((7, 403), "$ x7 x7 x7 * ^ 4 0 3 = ", "1 2 8 2"),
        solver=multiply,
        positions=(("x7x7*^43=103", [3, 2, 1, 4, 3, 2, 1]),),
        typed={"$ x7 x7 x7 * ^ 4 0 3 =": "$ x7 x7 x7 * ^ 4 0 3 = "},
        untyped=("", "12", "12 * 10", "10 * 10", "-1 * 2", "1 * 2 * 3"),
    ),
    "two_digit_multiplication": Row(
        golden=((25, 403), "$ y2 y2 y2 * x5 x5 x5 * ^ 4 0 3 = ", "5 7 0 0 1"),
        solver=multiply,
        positions=(("y2*x5*^7=571", [2, 1, 2, 1, 3, 2, 1]),),
        typed={"403 * 7 =": "$ y0 y0 y0 * x7 x7 x7 * ^ 4 0 3 = "},
    ),
    "carried_multiplication": Row(
        golden=((25, 7), "$ y2 * x5 * ^ 7 = ", "t35 t17 t1"),
        solver=multiply_by_columns,
        wrong=("5 7 0 0 1", "t1 2"),
        positions=(("y2*x5*^7=t35t17t1", [2, 1, 2, 1, 3, 2, 1]),),
    ),
    "multiply_add": Row(
        golden=((5, 7, 3), "$ x7 * ^ 3 + ^ p5 = ", "t26 t2"),
        solver=multiply_and_add,
        wrong=("0 8 8 2", "t100"),
        positions=(("x7*^3+^p5=t26t2", [2, 1, 3, 2, 1, 3, 2, 1]),),
        typed={"$x7 x7 * ^03 + ^ p5p9 =": "$ x7 x7 * ^ 0 3 + ^ p5 p9 = "},
        untyped=("12 * 10 + 1", "7 * 403", "7 * 403 +", "7 + 3"),
        described=(((59, 7, 3), "t30 t8 t0", "7 * 3 + 59 = 80 (right)"),),
    ),
}


@pytest.mark.parametrize(
    ("name", "turn"),
    [("aligned_multiplication", 1), ("two_digit_multiplication", 0)],
)
def test_factors_have_any_two_digits_and_numbers_are_from_zero(name, turn):
    examples = training_examples(TEXT_TASKS[name](), [1], size=0)
    drawn = [examples.problem(index) for index in range(4000)]
    assert {problem[turn] for problem in drawn} == {*range(100)}
    assert {problem[1 - turn] for problem in drawn} == {*range(10)}


def test_any_number_of_a_sum_may_be_the_longest():
    task = TEXT_TASKS["marked_sum"]()
    rng = np.random.default_rng(0)
    orders = set()
    for number in range(200):
        problem = task.draw(rng, (3, 3, 3), number)
        orders.add(tuple(len(str(term)) for term in problem))
    assert {(3, 1, 2), (1, 2, 3), (2, 3, 1), (3, 3, 3)} < orders
    assert {max(order) for order in orders} == {3}


def test_what_is_added_has_any_length_up_to_that_of_the_number():
    task = TEXT_TASKS["multiply_add"]()
    rng = np.random.default_rng(0)
    drawn = [task.draw(rng, (7,), 0) for _ in range(400)]
    assert {len(str(added)) for added, _, _ in drawn} == {*range(1, 8)}
