import re

from datasets.text_tasks.polynomial import Terms
from tests.datasets.text_tasks.row import Row
from tests.datasets.text_tasks.solvers import read_number, write_digits


def evaluate(prompt):
    point, terms = re.search(r"x = (.+?) in (.+) \?", prompt).groups()
    formula = terms.replace("- ", "-").replace("x", f"({read_number(point)})")
    value = eval(formula, {"__builtins__": {}})
    return f"The answer is {write_digits(value % 10)}."


ROWS = {
    "polynomial": Row(
        golden=(
            Terms(-2, ((3, 3), (-1, 0))),
            "Evaluate at x = - 2 in 3 * x ** 3 + - 1 * x ** 0 ? ",
            "The answer is 5.",
        ),
        steps=(
            "in 3 * x ** 3 comp 3 * - 2 ** 3 = 3 * - 8 out - 2 4 "
            "[ sum: 0 + - 2 4 = 6 ] re - 1 * x ** 0 # "
            "in - 1 * x ** 0 comp - 1 * - 2 ** 0 = - 1 * 1 out - 1 "
            "[ sum: 6 + - 1 = 5 ] re "
        ),
        solver=evaluate,
    )
}
