import re

from tests.datasets.text_tasks.row import Row


def count_ones(prompt):
    bits = re.search(r"\[ (.+) \]", prompt)[1]
    even = bits.count("1") in range(0, 1000, 2)
    return f"The answer is {'Yes' if even else 'No'}."


ROWS = {
    "parity": Row(
        golden=(
            (1, 0),
            "Is the number of 1's even in the sequence [ 1, 0 ] ? ",
            "The answer is No.",
        ),
        steps=(
            "in 1 comp 1 ** par = 1 ** 0 out 1 [ par: 1 ] re [ 0 ] # "
            "in 0 comp 0 ** par = 0 ** 1 out 1 [ par: 1 ] re [  ]"
        ),
        solver=count_ones,
        wrong=("The answer is Yes No.", "Yes."),
    )
}
