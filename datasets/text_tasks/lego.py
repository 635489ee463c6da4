"""LEGO: the value of a variable in a chain of assignments.

For example:

    If c = -1, a = - c, b = + a. Then, what is the value of b? The answer is +1.
"""

import dataclasses
import string
from typing import NamedTuple

from datasets.text_tasks.base import Step, Template, TextTask

VARIABLES = tuple(string.ascii_lowercase)


class Chain(NamedTuple):
    """A chain of variables, each equal to the one before it or its opposite.

    Attributes:
        variables: Tuple of str, in the order of the chain.
        values: Tuple of int, 1 or -1, of the variables.
        order: Tuple of int. The order in which the text defines them.
        query: int. Index of the variable in question.
    """

    variables: tuple
    values: tuple
    order: tuple
    query: int

    def clause(self, index):
        """Returns the definition of a variable."""
        name = self.variables[index]
        if index == 0:
            return f"{name} = {_sign(self.values[0])}1"
        sign = _sign(self.values[index] * self.values[index - 1])
        return f"{name} = {sign} {self.variables[index - 1]}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LEGO(TextTask):
    """The value of a variable of a chain; the length counts its variables.

    The question is about a variable of the second half.

    Args:
        permuted: bool. Whether the definitions are in random order.

    Reference: Zhang et al., 2022. https://arxiv.org/abs/2206.04301
    """

    permuted: bool = False

    templates = {
        "code": Template(
            "If {clauses}. Then, what is the value of {query}? ",
            "",
            "The answer is {answer}.",
            ", ",
        ),
        "paper": Template(
            "If {clauses}. Then what is {query}? ",
            "",
            "The answer is {answer}.",
            "; ",
        ),
    }
    symbols = (*VARIABLES, *"=+-1,")
    step_words = "= + - 1 ,"
    ignores_case = True
    trained_lengths = range(4, 9)
    tested_lengths = range(9, 17)

    def draw(self, rng, place, number):
        """Draws variables, values and the question."""
        (length,) = place
        order = range(length)
        if self.permuted:
            order = rng.permutation(length).tolist()
        names = rng.permutation(len(VARIABLES))[:length]
        return Chain(
            tuple(VARIABLES[name] for name in names),
            tuple((2 * rng.integers(0, 2, length) - 1).tolist()),
            tuple(order),
            int(rng.integers((length + 1) // 2, length)),
        )

    def longest(self, place):
        """Returns a chain with the question at its end.

        Raises:
            ValueError: If there are fewer variables, or only one.
        """
        (length,) = place
        if not 2 <= length <= len(VARIABLES):
            raise ValueError(
                f"LEGO needs lengths from 2 to {len(VARIABLES)}, its "
                f"variables; got {length}."
            )
        return Chain(
            VARIABLES[:length], (1,) * length, tuple(range(length)), length - 1
        )

    def fill(self, problem):
        """Writes the definitions, the question and the value."""
        return {
            "clauses": self._join(problem.order, problem),
            "query": problem.variables[problem.query],
            "answer": f"{_sign(problem.values[problem.query])}1",
        }

    def read_value(self, words):
        """Reads +1 or -1."""
        return "".join(words) if words in (["+", "1"], ["-", "1"]) else None

    def steps(self, problem):
        """Follows the chain to the variable in question."""
        for index in range(problem.query + 1):
            computation = ""
            if index:
                before = problem.values[index - 1]
                sign = _sign(problem.values[index] * before)
                name = problem.variables[index - 1]
                computation = f"{sign} {name} = {sign} {_sign(before)}1"
            yield Step(
                input=problem.variables[index],
                computation=computation,
                output=f"{_sign(problem.values[index])}1",
                variable=None,
                remaining=self._join(
                    [other for other in problem.order if other > index],
                    problem,
                ),
            )

    def _join(self, indices, problem):
        return self.wording.between.join(map(problem.clause, indices))


def _sign(value):
    return "+" if value > 0 else "-"
