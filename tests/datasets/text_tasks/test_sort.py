import re

from tests.datasets.text_tasks.row import Row
from tests.datasets.text_tasks.solvers import read_number


def sort(prompt, key):
    items = re.search(r"\[ (.+) \]", prompt)[1]
    order = sorted(items.split(", "), key=key)
    return f"The sorted list is [ {', '.join(order)} ]."


ROWS = {
    "sort": Row(
        golden=(
            (7, 1),
            "Sort the following list [ w7, w1 ]. ",
            "The sorted list is [ w1, w7 ].",
        ),
        steps=(
            "in w7 comp The minimum of the unsorted portion out w1 re [ w7 ] # "
            "in w7 comp The minimum of the unsorted portion out w7 re [  ]"
        ),
        solver=lambda prompt: sort(prompt, lambda item: int(item[1:])),
        wrong=("The sorted list is [ w1, ].", "The sorted list is [ 7 ]."),
    ),
    "sort_multi_digit": Row(
        golden=(
            (120, 35),
            "Sort the following list [ 1 2 0, 3 5 ]. ",
            "The sorted list is [ 3 5, 1 2 0 ].",
        ),
        steps=(
            "in 1 2 0 comp The minimum of the unsorted portion out 3 5 "
            "re [ 1 2 0 ] # in 1 2 0 comp The minimum of the unsorted portion "
            "out 1 2 0 re [  ]"
        ),
        solver=lambda prompt: sort(prompt, read_number),
        wrong=("The sorted list is [ w1 ].",),
    ),
}
