"""Sums of several numbers and products: typed problems, factors, positions."""

import collections
import re

import numpy as np
import pytest

from datasets.text_tasks import TEXT_TASKS, base
from datasets.text_tasks.examples import training_examples
from datasets.text_tasks.vocabulary import WordVocabulary
from keras_lengen.layers import CoupledPositions
from tests.datasets.text_tasks.row import Row

ZEROS = " + ^ 0 0"
PRODUCTS = (
    "digit_multiplication",
    "two_digit_multiplication",
    "carried_multiplication",
)


def read_numbers(prompt):
    """Returns the numbers of a prompt, which has a mark before each."""
    words = re.fullmatch(r"\$ \^ (.+) =", prompt)[1].split(" + ^ ")
    assert len(words) == 5
    assert len({len(text) for text in words}) == 1
    return [text.replace(" ", "") for text in words]


def add(prompt):
    numbers = read_numbers(prompt)
    width = len(numbers[0]) + 1
    return " ".join(f"{sum(map(int, numbers)):0{width}d}"[::-1])


def read_factors(prompt):
    """Returns the digits of the factor and those of the number."""
    *factor, number = re.fullmatch(r"\$ (.+) =", prompt)[1].split(" * ")
    mark, *digits = number.split()
    assert mark == "^"
    read = []
    for run, letter in zip(factor, "yx"[-len(factor) :], strict=True):
        (word,) = set(run.split())
        assert word[0] == letter and len(run.split()) == len(digits)
        read.append(int(word[1:]))
    return read, [*map(int, digits)]


def multiply(prompt):
    factor, digits = read_factors(prompt)
    number = int("".join(map(str, digits))) * int("".join(map(str, factor)))
    return " ".join(f"{number:0{len(digits) + len(factor)}d}"[::-1])


def multiply_and_add(prompt):
    """Returns the totals of columns, from what the columns so far add up to."""
    product, added = re.fullmatch(r"(.+) \+ (.+) =", prompt).groups()
    (factor,), digits = read_factors(f"{product} =")
    mark, *added = added.split()
    assert mark == "^" and len(added) == len(digits)
    assert {word[0] for word in added} == {"p"}
    number = int("".join(map(str, digits)))
    other = int("".join(word[1:] for word in added))
    words = []
    for place in range(len(digits) + 1):
        unit = 10**place
        carried = (factor * (number % unit) + other % unit) // unit
        column = factor * (number // unit % 10) + other // unit % 10
        words.append(f"t{column + carried}")
    return " ".join(words)


def total_columns(prompt):
    """Returns the totals of columns, from the convolution of the digits."""
    totals, carry = [], 0
    for column in [*np.convolve(*read_factors(prompt))[::-1].tolist(), 0]:
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
    ),
    "digit_multiplication": Row(
        golden=((7, 403), "$ x7 x7 x7 * ^ 4 0 3 = ", "1 2 8 2"),
        solver=multiply,
        wrong=("1 x1",),
    ),
    "two_digit_multiplication": Row(
        golden=((25, 403), "$ y2 y2 y2 * x5 x5 x5 * ^ 4 0 3 = ", "5 7 0 0 1"),
        solver=multiply,
    ),
    "carried_multiplication": Row(
        golden=(
            (25, 403),
            "$ y2 y2 y2 * x5 x5 x5 * ^ 4 0 3 = ",
            "t15 t7 t20 t10 t1",
        ),
        solver=total_columns,
        wrong=("5 7 0 0 1", "t1 2"),
    ),
    "multiply_add": Row(
        golden=(
            (59, 7, 403),
            "$ x7 x7 x7 * ^ 4 0 3 + ^ p0 p5 p9 = ",
            "t30 t8 t28 t2",
        ),
        solver=multiply_and_add,
        wrong=("0 8 8 2", "t1 2", "p1", "t100"),
    ),
}


@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        ("marked_sum", "^65+^04+^90=951", [4, 3, 2, 1] * 3),
        ("digit_multiplication", "x7x7*^43=103", [3, 2, 1, 4, 3, 2, 1]),
        ("two_digit_multiplication", "y2*x5*^7=571", [2, 1, 2, 1, 3, 2, 1]),
        ("carried_multiplication", "y2*x5*^7=t35t17t1", [2, 1, 2, 1, 3, 2, 1]),
        (
            "multiply_add",
            "x7x7*^43+^p0p5=t26t30t3",
            [3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1],
        ),
    ],
)
def test_coupled_positions_are_those_of_counterparts(name, text, places):
    """Words of a factor have the positions of the digits."""
    task = TEXT_TASKS[name]()
    vocabulary = WordVocabulary(task)
    sampler = CoupledPositions(**vocabulary.align(task.alignment))
    ids = vocabulary.tokenize(f"${text}")
    assert vocabulary.unknown not in ids
    positions = np.asarray(sampler(np.array([ids])))[0].tolist()
    answer = len(ids) - 1 - len(places)
    assert positions == [0, *places, *range(2, answer + 2)]


@pytest.mark.parametrize(
    ("name", "text", "prompt"),
    [
        ("marked_sum", "1+34 + 6", f"$ ^ 0 1 + ^ 3 4 + ^ 0 6{ZEROS * 2} = "),
        ("marked_sum", "1+1+1+1+1=", "$ ^ 1 + ^ 1 + ^ 1 + ^ 1 + ^ 1 = "),
        ("digit_multiplication", "403*7", "$ x7 x7 x7 * ^ 4 0 3 = "),
        (
            "digit_multiplication",
            "$ x7 x7 x7 * ^ 4 0 3 =",
            "$ x7 x7 x7 * ^ 4 0 3 = ",
        ),
        (
            "two_digit_multiplication",
            "403 * 7 =",
            "$ y0 y0 y0 * x7 x7 x7 * ^ 4 0 3 = ",
        ),
        (
            "carried_multiplication",
            "4 0 3 * 25",
            "$ y2 y2 y2 * x5 x5 x5 * ^ 4 0 3 = ",
        ),
        (
            "multiply_add",
            "7*403 + 59 =",
            "$ x7 x7 x7 * ^ 4 0 3 + ^ p0 p5 p9 = ",
        ),
        ("multiply_add", "3 * 7 + 12", "$ x3 x3 * ^ 0 7 + ^ p1 p2 = "),
        (
            "multiply_add",
            "$ x7 x7 * ^ 0 3 + ^ p5 p9 =",
            "$ x7 x7 * ^ 0 3 + ^ p5 p9 = ",
        ),
    ],
)
def test_problems_as_people_type_them(name, text, prompt):
    task = TEXT_TASKS[name]()
    assert task.write_prompt(task.read_problem(text)) == prompt


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("marked_sum", ["", "1 + 2", "1 + 2 + 3 + 4 + 5 + 6", "1 + 2 - 3"]),
        ("marked_sum", ["1 + 2 + ", "1.5 + 2 + 3", "+ 1 + 2 + 3"]),
        (
            "digit_multiplication",
            ["", "12", "12 * 10", "10 * 10", "-1 * 2", "1 * 2 * 3"],
        ),
        ("two_digit_multiplication", ["120 * 100", "12 + 1"]),
        ("multiply_add", ["12 * 10 + 1", "7 * 403", "7 * 403 +", "7 + 3"]),
    ],
)
def test_what_people_type_that_is_no_problem(name, texts):
    for text in texts:
        assert TEXT_TASKS[name]().read_problem(text) is None, text


@pytest.mark.parametrize(
    ("name", "problem", "words", "described"),
    [
        ("marked_sum", (9, 8, 7), "4 2", "9 + 8 + 7 = 24 (right)"),
        ("marked_sum", (9, 8, 7), "4 1", "9 + 8 + 7 = 14 (wrong, it is 24)"),
        ("digit_multiplication", (3, 12), "6 3 0", "3 * 12 = 36 (right)"),
        ("digit_multiplication", (3, 12), "6 x3 0", None),
        (
            "carried_multiplication",
            (25, 7),
            "t35 t17 t1",
            "25 * 7 = 175 (right)",
        ),
        (
            "carried_multiplication",
            (25, 7),
            "t35 t7 t1",
            "25 * 7 = 175 (wrong, it is 175)",
        ),
        ("carried_multiplication", (25, 7), "5 7 1", None),
        ("multiply_add", (59, 7, 3), "t30 t8 t0", "7 * 3 + 59 = 80 (right)"),
    ],
)
def test_answers_are_described_as_people_write_them(
    name, problem, words, described
):
    task = TEXT_TASKS[name]()
    assert task.describe_answer(problem, words.split()) == described


@pytest.mark.parametrize("name", PRODUCTS)
def test_training_has_all_factors_and_people_type_few(name):
    task = TEXT_TASKS[name]()
    most = 9 if name == "digit_multiplication" else 99
    for structured in (0.0, 1.0):
        examples = training_examples(task, [3], size=0, structured=structured)
        factors = collections.Counter(
            examples.problem(index)[0] for index in range(4000)
        )
        assert set(factors) == set(range(most + 1))
        if not structured:
            assert max(factors.values()) < 4 * min(factors.values())
    rng = np.random.default_rng(0)
    usual = {task.draw_kind("usual_factor", rng, (3,))[0] for _ in range(400)}
    assert {0, 1, 9} < usual and max(usual) == most and len(usual) < 14


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


@pytest.mark.parametrize("name", ROWS)
def test_every_word_of_an_answer_counts(name):
    task = TEXT_TASKS[name]()
    letters = {"carried_multiplication": "t", "multiply_add": "t"}
    digit = letters.get(name, "") + "1"
    zero = digit.replace("1", "0")
    read = [
        task.read_answer(base.split_words(text))
        for text in (digit, f"{digit} {zero}")
    ]
    assert read[0] != read[1]
    assert None not in read


@pytest.mark.parametrize("place", [(1,), (3,), (7,)])
def test_what_is_added_is_no_longer_than_the_number(place):
    """Long multiplication begins with 0 and adds numbers of all lengths."""
    task = TEXT_TASKS["multiply_add"]()
    rng = np.random.default_rng(0)
    lengths = set()
    for _ in range(400):
        added, factor, number = task.draw(rng, place, 0)
        assert 0 <= factor <= 9 and len(str(number)) == place[0]
        lengths.add(len(str(added)))
    assert lengths == {*range(1, place[0] + 1)}


@pytest.mark.parametrize("name", ROWS)
def test_the_largest_answers_have_known_words(name):
    """The largest carries and totals occur in products of nines."""
    task = TEXT_TASKS[name]()
    for digits in (1, 2, 5):
        nines, length = 10**digits - 1, (digits,) * 3
        problem = {
            "marked_sum": (nines,) * 5,
            "multiply_add": (nines, 9, nines),
        }.get(name, task.longest(length))
        answer = base.split_words(task.write_answer(problem))
        assert {*answer} <= {*task.words}
        assert task.read_answer(answer) is not None
