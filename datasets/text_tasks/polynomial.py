"""Polynomial: its value at a point, modulo 10.

For example:

    Evaluate at x = 2 in 3 * x ** 0 + - 1 * x ** 3 ? The answer is 5.
"""

import dataclasses
from typing import NamedTuple

from datasets.text_tasks.base import Step, Template, TextTask
from datasets.text_tasks.symbols import DIGITS, read_number, spell

MODULUS = 10


class Terms(NamedTuple):
    """A polynomial and a point.

    Attributes:
        point: int.
        terms: Tuple of pairs of int, coefficients and exponents.
    """

    point: int
    terms: tuple

    def values(self):
        """Returns the values of the terms, where `0**0` is 1."""
        return [
            coefficient * self.point**exponent
            for coefficient, exponent in self.terms
        ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Polynomial(TextTask):
    """The value of a polynomial modulo 10; the length is its number of terms.

    Coefficients are from -3 to 3, exponents from 0 to 3, and points from -2
    to 2.

    Reference: Kazemnejad et al., 2023, section 3 and appendix D.1.
    https://arxiv.org/abs/2305.19466
    """

    templates = {
        "code": Template(
            "Evaluate at x = {point} in {terms} ? ",
            "",
            "The answer is {answer}.",
            " * ",
        ),
        "paper": Template(
            "Evaluate x = {point} in ( {terms} ) % 1 0 ? ",
            "",
            "The answer is {answer}.",
            " ",
        ),
    }
    symbols = (*DIGITS, *"-+*x", "**")
    step_words = "= sum :"
    trained_lengths = range(4, 9)
    tested_lengths = range(9, 17)

    def draw(self, rng, place, number):
        """Draws the point and all terms uniformly."""
        (length,) = place
        coefficients = rng.integers(-3, 4, length).tolist()
        exponents = rng.integers(0, 4, length).tolist()
        point = int(rng.integers(-2, 3))
        return Terms(point, tuple(zip(coefficients, exponents, strict=True)))

    def longest(self, place):
        """Returns terms of which one has the most words, in every step."""
        (length,) = place
        # -3 * (-2)**2 = -12 has more words than any other value.
        return Terms(-2, ((-3, 2),) * length)

    def fill(self, problem):
        """Spells the point, the terms and the value."""
        return {
            "point": spell(problem.point),
            "terms": self._spell(problem.terms),
            "answer": spell(sum(problem.values()) % MODULUS),
        }

    def read_value(self, words):
        """Reads a number."""
        return read_number(words)

    def steps(self, problem):
        """Adds the values of the terms from left to right."""
        total, point = 0, problem.point
        values = problem.values()
        for number, (coefficient, exponent) in enumerate(problem.terms):
            added = (total + values[number]) % MODULUS
            factor, value = spell(coefficient), spell(values[number])
            yield Step(
                input=self._spell([(coefficient, exponent)]),
                computation=f"{factor} * {spell(point)} ** {exponent} = "
                f"{factor} * {spell(point**exponent)}",
                output=value,
                variable=f"sum: {total} + {value} = {added}",
                remaining=self._spell(problem.terms[number + 1 :]),
            )
            total = added

    def _spell(self, terms):
        return " + ".join(
            self.wording.between.join([spell(coefficient), f"x ** {exponent}"])
            for coefficient, exponent in terms
        )
