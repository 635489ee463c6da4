import re

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
        solver=add,
        wrong=("The answer is .", "The answer is 1 x.", "The answer is 1"),
    )
}
