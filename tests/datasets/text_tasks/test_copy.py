import re

from tests.datasets.text_tasks.row import Row
from tests.datasets.text_tasks.solvers import read_words


def copy(prompt):
    return " ".join(read_words(prompt, "Copy"))


def replace(prompt):
    pattern = r"Replace (\w+) with (\w+) in (.+) \[SEP\]"
    first, second, words = re.fullmatch(pattern, prompt).groups()
    assert first != second
    return re.sub(rf"\b{first}\b", second, words)


ROWS = {
    "copy": Row(
        golden=((7, 1), "Copy: w7 w1 [SEP] ", "w7 w1"),
        solver=copy,
        wrong=("",),
    ),
    "copy_twice": Row(
        golden=((7, 1), "Copy: w7 w1 [SEP] ", "w7 w1 [NEXT] w7 w1"),
        solver=lambda prompt: f"{copy(prompt)} [NEXT] {copy(prompt)}",
    ),
    "copy_repeated": Row(
        golden=((7, 7), "Copy: w7 w7 [SEP] ", "w7 w7"),
        solver=copy,
    ),
    "copy_repeated_twice": Row(
        golden=((7, 7), "Copy: w7 w7 [SEP] ", "w7 w7 w7 w7"),
        solver=lambda prompt: f"{copy(prompt)} {copy(prompt)}",
    ),
    "copy_replace": Row(
        golden=((7, 1, 2), "Replace w7 with w1 in w7 w7 [SEP] ", "w1 w1"),
        solver=replace,
    ),
}
