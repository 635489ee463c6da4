"""Tasks with a scratchpad: numbers, lists and chains."""

import re

from datasets.text_tasks.examples import length_examples
from datasets.text_tasks.lego import LEGO, Chain
from datasets.text_tasks.polynomial import Terms
from tests.datasets.text_tasks.row import Row


def read_number(text):
    return int(text.replace(" ", ""))


def write_digits(number):
    return ("- " if number < 0 else "") + " ".join(str(abs(number)))


def add(prompt):
    first, second = re.fullmatch(r"Compute (.+) \+ (.+) \?", prompt).groups()
    total = read_number(first) + read_number(second)
    return f"The answer is {write_digits(total)}."


def sum_modulo_10(prompt):
    digits = re.fullmatch(r"Compute: (.+) \.\[SEP\]", prompt)[1].split(" + ")
    return f"The answer is {sum(map(int, digits)) % 10} ."


def count_ones(prompt):
    bits = re.search(r"\[ (.+) \]", prompt)[1]
    even = bits.count("1") in range(0, 1000, 2)
    return f"The answer is {'Yes' if even else 'No'}."


def evaluate(prompt):
    point, terms = re.search(r"x = (.+?) in (.+) \?", prompt).groups()
    formula = terms.replace("- ", "-").replace("x", f"({read_number(point)})")
    value = eval(formula, {"__builtins__": {}})
    return f"The answer is {write_digits(value % 10)}."


def sort(prompt, key):
    items = re.search(r"\[ (.+) \]", prompt)[1]
    order = sorted(items.split(", "), key=key)
    return f"The sorted list is [ {', '.join(order)} ]."


def follow(prompt):
    clauses, query = re.search(r"If (.+)\. .* of (.)\?", prompt).groups()
    known = {"1": 1}
    while query not in known:
        for name, sign, other in re.findall(r"(.) = ([+-]) ?(.)", clauses):
            if other in known:
                known[name] = known[other] * (1 if sign == "+" else -1)
    return f"The answer is {'+1' if known[query] == 1 else '-1'}."


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
    ),
    "summation": Row(
        golden=((4, 9), "Compute: 4 + 9 .[SEP] ", "The answer is 3 ."),
        steps=(
            "in 4 comp 4 + sum = 4 + 0 = out 4 [ sum: 4 = 4 ] re 9 # "
            "in 9 comp 9 + sum = 9 + 4 = out 1 3 [ sum: 1 3 = 3 ] re "
        ),
        solver=sum_modulo_10,
    ),
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
    ),
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
    ),
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
    "lego": Row(
        golden=(
            Chain(("c", "a", "b"), (-1, 1, 1), (0, 1, 2), 1),
            "If c = -1, a = - c, b = + a. Then, what is the value of a? ",
            "The answer is +1.",
        ),
        steps=(
            "in c comp  out -1 re a = - c, b = + a # "
            "in a comp - c = - -1 out +1 re b = + a"
        ),
        solver=follow,
        wrong=("The answer is 1.", "The answer is +1"),
    ),
}


def test_permuted_definitions():
    examples = length_examples(LEGO(permuted=True), 12)
    problems = [examples.problem(index) for index in range(250)]
    assert len({problem.order for problem in problems}) > 100
    for problem in problems:
        prompt, answer = examples.write(problem)
        assert answer == ROWS["lego"].solve(prompt)
