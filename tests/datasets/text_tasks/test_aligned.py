"""Aligned tasks: counterparts of words, typed problems, and their limits."""

import collections
import functools
import re

import numpy as np
import pytest

from datasets.text_tasks import TEXT_TASKS, base
from datasets.text_tasks.examples import length_examples, training_examples
from datasets.text_tasks.vocabulary import WordVocabulary
from keras_lengen.layers import CoupledPositions
from tests.datasets.text_tasks.row import Row


def read(prompt):
    """Returns the words between the first one and the equals sign."""
    return re.fullmatch(r"\$ (.+) =", prompt)[1]


def add_columns(prompt, order=-1):
    """Adds digit by digit, and keeps the last carry, zero or not."""
    first, second = (text.split() for text in read(prompt).split(" + "))
    answer, carry = [], 0
    for pair in zip(first[::order], second[::order], strict=True):
        carry, digit = divmod(sum(map(int, pair)) + carry, 10)
        answer.append(str(digit))
    return " ".join([*answer, str(carry)])


def multiply_columns(prompt):
    first, second = (text.split() for text in read(prompt).split(" * "))
    factor, answer, carry = int("".join(second)), [], 0
    for digit in reversed(first):
        carry, rest = divmod(int(digit) * factor + carry, 10)
        answer.append(str(rest))
    return " ".join([*answer, str(carry % 10), str(carry // 10)])


def accumulate_parity(prompt):
    bits = read(prompt).split()
    counts = [bits[: end + 1].count("1") for end in range(len(bits))]
    return " ".join("01"[count % 2] for count in counts)


def add_by_hints(prompt):
    first, second = (
        dict(re.findall(r"(h\d+) (\d)", text))
        for text in read(prompt).split(" + ")
    )
    total = 0
    hints = list(max(first, second, key=len))
    for place, hint in enumerate(hints):
        pair = int(first.get(hint, 0)) + int(second.get(hint, 0))
        total += pair * 10**place
    start = int(hints[0][1:])
    return " ".join(
        f"h{start + place} {digit}"
        for place, digit in enumerate(reversed(str(total)))
    )


ROWS = {
    "aligned_addition": Row(
        golden=((653, 49), "$ 6 5 3 + 0 4 9 = ", "2 0 7 0"),
        solver=add_columns,
        wrong=("1 x", "1 + 2"),
    ),
    "aligned_multiplication": Row(
        golden=((120, 5), "$ 1 2 0 * 0 5 = ", "0 0 6 0 0"),
        solver=multiply_columns,
    ),
    "aligned_copy": Row(
        golden=((7, 0, 1), "$ 7 0 1 = ", "7 0 1"),
        solver=read,
    ),
    "aligned_reverse": Row(
        golden=((7, 0, 1), "$ 7 0 1 = ", "1 0 7"),
        solver=lambda prompt: read(prompt)[::-1],
    ),
    "aligned_parity": Row(
        golden=((1, 0, 1), "$ 1 0 1 = ", "1 1 0"),
        solver=accumulate_parity,
    ),
    "marked_addition": Row(
        golden=((653, 49), "$ ^ 6 5 3 + ^ 0 4 9 = ", "2 0 7 0"),
        solver=lambda prompt: add_columns(prompt.replace("^ ", "")),
    ),
    "reversed_addition": Row(
        golden=((653, 49), "$ 3 5 6 + 9 4 0 = ", "2 0 7 0"),
        solver=functools.partial(add_columns, order=1),
    ),
    "hinted_addition": Row(
        golden=((42, 39, 5), "$ h5 2 h6 4 + h5 9 h6 3 = ", "h5 1 h6 8"),
        solver=add_by_hints,
    ),
}


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("aligned_addition", ["653+049=2070", "9+1=01", "0+0=00"]),
        ("aligned_multiplication", ["120*35=00240", "7*05=530"]),
        ("aligned_copy", ["701=701"]),
        ("aligned_reverse", ["701=107"]),
        ("aligned_parity", ["101=110"]),
        ("marked_addition", ["^653+^049=2070", "^0+^0=00"]),
        ("reversed_addition", ["356+940=2070"]),
    ],
)
def test_coupled_positions_are_those_of_counterparts(name, texts):
    """Items of the answer meet the items that they are computed from."""
    task = TEXT_TASKS[name]()
    sampler = CoupledPositions(**WordVocabulary(task).align(task.alignment))
    for text in texts:
        prompt, answer = text.split("=")
        ids = WordVocabulary(task).tokenize(f"${text}")
        positions = np.asarray(sampler(np.array([ids])))[0].tolist()
        assert positions[0] == 0
        runs = [len(run) for run in re.split(r"[+*]", prompt)]
        expected = []
        for count in runs:
            # A mark counts as an item.
            places = range(2, count + 2)
            down = task.alignment.order == "descending"
            expected += [*(reversed(places) if down else places), 1]
        expected += range(2, len(answer) + 2)
        assert positions[1:] == expected


@pytest.mark.parametrize(
    ("name", "text", "prompt"),
    [
        ("marked_addition", "12+345", "$ ^ 0 1 2 + ^ 3 4 5 = "),
        ("marked_addition", " 19 + 7 = ", "$ ^ 1 9 + ^ 0 7 = "),
        ("marked_addition", "$ 1 0 + 0 7 =", "$ ^ 1 0 + ^ 0 7 = "),
        ("marked_addition", "$ ^ 1 0 + ^ 9 7 =", "$ ^ 1 0 + ^ 9 7 = "),
        ("marked_addition", "000 + 000", "$ ^ 0 + ^ 0 = "),
        ("aligned_addition", "1 0 + 7", "$ 1 0 + 0 7 = "),
        ("reversed_addition", "12 + 345", "$ 2 1 0 + 5 4 3 = "),
        ("reversed_addition", "$ 3 5 6 + 9 4 0 =", "$ 3 5 6 + 9 4 0 = "),
        ("aligned_copy", "70 1", "$ 7 0 1 = "),
        ("aligned_parity", "$ 1 0 1 =", "$ 1 0 1 = "),
    ],
)
def test_problems_as_people_type_them(name, text, prompt):
    task = TEXT_TASKS[name]()
    problem = task.read_problem(text)
    assert task.write_prompt(problem) == prompt


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("marked_addition", text) for text in ("", "12", "1.5 + 2", "1 - 2")),
        *(("marked_addition", text) for text in ("1 + 2 + 3", "-1 + 2", "a")),
        *(("aligned_parity", text) for text in ("", "$ =", "012", "1 + 1")),
    ],
)
def test_what_people_type_that_is_no_problem(name, text):
    assert TEXT_TASKS[name]().read_problem(text) is None


def test_sums_are_described_as_people_write_them():
    task = TEXT_TASKS["marked_addition"]()
    for words, described in (
        ("4 2 0", "19 + 5 = 24 (right)"),
        ("4 2", "19 + 5 = 24 (wrong, it is 24)"),
        ("5 1 0", "19 + 5 = 15 (wrong, it is 24)"),
        ("4 ^ 0", None),
        ("", None),
    ):
        found = task.describe_answer((19, 5), words.split())
        assert found == described, words


def test_hints_end():
    with pytest.raises(ValueError, match=r"256 hints.* 255 digits; got 256"):
        length_examples(TEXT_TASKS["hinted_addition"](), 256).longest()


def test_the_second_factor_is_any_number_of_two_digits():
    task = TEXT_TASKS["aligned_multiplication"]()
    examples = training_examples(task, [1, 3], size=0)
    problems = [examples.problem(index) for index in range(4000)]
    factors = collections.Counter(second for _, second in problems)
    assert set(factors) == set(range(100))
    assert max(factors.values()) < 3 * min(factors.values())
    for first, second in problems:
        words = " ".join([*str(first), "*", *f"{second:02d}"])
        assert task.fill((first, second))["prompt"] == words


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("aligned_addition", "2 0 7", "2 0 7 0"),
        ("aligned_multiplication", "2 0 7", "2 0 7 0"),
        ("reversed_addition", "2 0 7", "2 0 7 0"),
        ("hinted_addition", "h5 1 h6 8", "h1 1 h2 8"),
    ],
)
def test_every_word_of_an_aligned_answer_counts(name, first, second):
    task = TEXT_TASKS[name]()
    read = [task.read_answer(base.split_words(t)) for t in (first, second)]
    assert read[0] != read[1]
    assert None not in read
