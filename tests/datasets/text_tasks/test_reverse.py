from tests.datasets.text_tasks.row import Row
from tests.datasets.text_tasks.solvers import read_words


def reverse(prompt):
    words = read_words(prompt, "Reverse")
    return " ".join(words.pop() for _ in range(len(words)))


ROWS = {
    "reverse": Row(
        golden=((7, 1), "Reverse: w7 w1 [SEP] ", "w1 w7"),
        solver=reverse,
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
