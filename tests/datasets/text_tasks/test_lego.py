import re

from datasets.text_tasks.examples import length_examples
from datasets.text_tasks.lego import LEGO, Chain
from tests.datasets.text_tasks.row import Row


def follow(prompt):
    clauses, query = re.search(r"If (.+)\. .* of (.)\?", prompt).groups()
    known = {"1": 1}
    while query not in known:
        for name, sign, other in re.findall(r"(.) = ([+-]) ?(.)", clauses):
            if other in known:
                known[name] = known[other] * (1 if sign == "+" else -1)
    return f"The answer is {'+1' if known[query] == 1 else '-1'}."


ROWS = {
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
    )
}


def test_permuted_definitions():
    examples = length_examples(LEGO(permuted=True), 12)
    problems = [examples.problem(index) for index in range(250)]
    assert len({problem.order for problem in problems}) > 100
    for problem in problems:
        prompt, answer = examples.write(problem)
        assert answer == ROWS["lego"].solve(prompt)
