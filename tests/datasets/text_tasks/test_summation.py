import re

from tests.datasets.text_tasks.row import Row


def sum_modulo_10(prompt):
    digits = re.fullmatch(r"Compute: (.+) \.\[SEP\]", prompt)[1].split(" + ")
    return f"The answer is {sum(map(int, digits)) % 10} ."


ROWS = {
    "summation": Row(
        golden=((4, 9), "Compute: 4 + 9 .[SEP] ", "The answer is 3 ."),
        steps=(
            "in 4 comp 4 + sum = 4 + 0 = out 4 [ sum: 4 = 4 ] re 9 # "
            "in 9 comp 9 + sum = 9 + 4 = out 1 3 [ sum: 1 3 = 3 ] re "
        ),
        solver=sum_modulo_10,
    )
}
