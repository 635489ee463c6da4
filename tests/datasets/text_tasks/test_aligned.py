import itertools
import re

import pytest

from datasets.text_tasks import TEXT_TASKS
from datasets.text_tasks.examples import length_examples
from tests.datasets.text_tasks.row import Row
from tests.datasets.text_tasks.solvers import add, multiply, write_reversed


def add_reversed(prompt):
    texts = ["".join(re.findall("[0-9]", part)) for part in prompt.split("+")]
    return write_reversed(
        sum(int(text[::-1]) for text in texts), len(texts[0]) + 1
    )


def read_items(prompt):
    return re.fullmatch(r"\$ (.+) =", prompt)[1].split()


def accumulate_parity(prompt):
    bits = map(int, read_items(prompt))
    return " ".join(map(str, itertools.accumulate(bits, int.__xor__)))


def add_by_hints(prompt):
    total = sum(
        int("".join(re.findall(r"h\d+ (\d)", part))[::-1])
        for part in prompt.split(" + ")
    )
    start = int(re.search(r"h(\d+)", prompt)[1])
    return " ".join(
        f"h{place} {digit}"
        for place, digit in enumerate(reversed(str(total)), start)
    )


ROWS = {
    "aligned_addition": Row(
        golden=((653, 49), "$ 6 5 3 + 0 4 9 = ", "2 0 7 0"),
        solver=add,
        wrong=("1 x", "1 + 2"),
        positions=(("653+049=2070", [4, 3, 2, 1] * 2),),
    ),
    "aligned_multiplication": Row(
        golden=((120, 5), "$ 1 2 0 * 0 5 = ", "0 0 6 0 0"),
        solver=multiply,
        positions=(("120*35=00240", [4, 3, 2, 1, 3, 2, 1]),),
    ),
    "aligned_copy": Row(
        golden=((7, 0, 1), "$ 7 0 1 = ", "7 0 1"),
        solver=lambda prompt: " ".join(read_items(prompt)),
        positions=(("701=701", [2, 3, 4, 1]),),
    ),
    "aligned_reverse": Row(
        golden=((7, 0, 1), "$ 7 0 1 = ", "1 0 7"),
        solver=lambda prompt: " ".join(read_items(prompt)[::-1]),
        positions=(("701=107", [4, 3, 2, 1]),),
    ),
    "aligned_parity": Row(
        golden=((1, 0, 1), "$ 1 0 1 = ", "1 1 0"),
        solver=accumulate_parity,
        typed={"$ 1 0 1 =": "$ 1 0 1 = "},
        untyped=("", "$ =", "012", "1 + 1"),
    ),
    "marked_addition": Row(
        golden=((653, 49), "$ ^ 6 5 3 + ^ 0 4 9 = ", "2 0 7 0"),
        solver=add,
        positions=(("^653+^049=2070", [5, 4, 3, 2, 1] * 2),),
        typed={
            "12+345": "$ ^ 0 1 2 + ^ 3 4 5 = ",
            "$ ^ 1 0 + ^ 9 7 =": "$ ^ 1 0 + ^ 9 7 = ",
        },
        untyped=("", "12", "1.5 + 2", "1 - 2", "1 + 2 + 3", "-1 + 2"),
        described=(
            ((19, 5), "4 2 0", "19 + 5 = 24 (right)"),
            ((19, 5), "4 2", "19 + 5 = 24 (wrong, it is 24)"),
            ((19, 5), "4 ^ 0", None),
        ),
    ),
    "reversed_addition": Row(
        golden=((653, 49), "$ 3 5 6 + 9 4 0 = ", "2 0 7 0"),
        solver=add_reversed,
        positions=(("356+940=2070", [2, 3, 4, 1] * 2),),
        typed={"$ 3 5 6 + 9 4 0 =": "$ 3 5 6 + 9 4 0 = "},
    ),
    "hinted_addition": Row(
        golden=((42, 39, 5), "$ h5 2 h6 4 + h5 9 h6 3 = ", "h5 1 h6 8"),
        solver=add_by_hints,
        described=(((42, 39, 5), "h5 1 h6 8", "42 + 39 = 81 (right)"),),
    ),
}


def test_hints_end():
    with pytest.raises(ValueError, match=r"256 hints.* 255 digits; got 256"):
        length_examples(TEXT_TASKS["hinted_addition"](), 256).longest()
