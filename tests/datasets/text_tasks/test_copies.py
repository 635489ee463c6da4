"""Tasks that copy, replace and reverse words."""

import re

from tests.datasets.text_tasks.row import Row


def read_words(prompt, verb):
    return re.fullmatch(rf"{verb}: (.+) \[SEP\]", prompt)[1].split()


def copy(prompt):
    return " ".join(read_words(prompt, "Copy"))


def replace(prompt):
    pattern = r"Replace (\w+) with (\w+) in (.+) \[SEP\]"
    first, second, words = re.fullmatch(pattern, prompt).groups()
    assert first != second
    return re.sub(rf"\b{first}\b", second, words)


def reverse(prompt):
    words = read_words(prompt, "Reverse")
    return " ".join(words.pop() for _ in range(len(words)))


ROWS = {
    "copy": Row(
        golden=((7, 1), "Copy: w7 w1 [SEP] ", "w7 w1"), solver=copy, wrong=("",)
    ),
    "copy_twice": Row(
        golden=((7, 1), "Copy: w7 w1 [SEP] ", "w7 w1 [NEXT] w7 w1"),
        solver=lambda prompt: f"{copy(prompt)} [NEXT] {copy(prompt)}",
    ),
    "copy_repeated": Row(
        golden=((7, 7), "Copy: w7 w7 [SEP] ", "w7 w7"), solver=copy
    ),
    "copy_repeated_twice": Row(
        golden=((7, 7), "Copy: w7 w7 [SEP] ", "w7 w7 w7 w7"),
        solver=lambda prompt: f"{copy(prompt)} {copy(prompt)}",
    ),
    "copy_replace": Row(
        golden=((7, 1, 2), "Replace w7 with w1 in w7 w7 [SEP] ", "w1 w1"),
        solver=replace,
    ),
    "reverse": Row(
        golden=((7, 1), "Reverse: w7 w1 [SEP] ", "w1 w7"), solver=reverse
    ),
    "reverse_twice": Row(
        golden=((7, 1), "Reverse: w7 w1 [SEP] ", "w1 w7 [NEXT] w1 w7"),
        solver=lambda prompt: f"{reverse(prompt)} [NEXT] {reverse(prompt)}",
    ),
    "reverse_and_back": Row(
        golden=((7, 1), "Reverse: w7 w1 [SEP] ", "w1 w7 [NEXT] w7 w1"),
        solver=lambda prompt: " ".join(
            [reverse(prompt), "[NEXT]", *read_words(prompt, "Reverse")]
        ),
    ),
}
