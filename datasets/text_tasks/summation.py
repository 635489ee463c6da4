"""Summation: the sum of digits modulo 10.

For example:

    Compute: 4 + 9 + 2 .[SEP] The answer is 5 .
"""

import dataclasses

from datasets.text_tasks.base import Step, Template, TextTask
from datasets.text_tasks.symbols import DIGITS, read_number, spell

MODULUS = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summation(TextTask):
    """The sum of digits from 1 to 9, modulo 10; the length is their number.

    Reference: Kazemnejad et al., 2023, section 3 and appendix D.1.
    https://arxiv.org/abs/2305.19466
    """

    templates = {
        "code": Template(
            "Compute: {digits} .", "[SEP] ", "The answer is {answer} ."
        ),
        "paper": Template(
            "Compute: ( {digits} ) % 1 0 ? ", "", "The answer is {answer}."
        ),
    }
    symbols = (*DIGITS, "+")
    step_words = "+ = sum :"
    trained_lengths = range(4, 9)
    tested_lengths = range(9, 17)

    def draw(self, rng, place, number):
        """Draws uniform digits."""
        return tuple(rng.integers(1, 10, *place).tolist())

    def longest(self, place):
        """Returns nines, so that every sum above 9 has two digits."""
        return (9,) * place[0]

    def fill(self, problem):
        """Spells the digits and their sum."""
        return {
            "digits": " + ".join(map(str, problem)),
            "answer": spell(sum(problem) % MODULUS),
        }

    def read_value(self, words):
        """Reads a number."""
        return read_number(words)

    def steps(self, problem):
        """Adds the digits from left to right."""
        total = 0
        for number, digit in enumerate(problem):
            added = digit + total
            yield Step(
                input=str(digit),
                computation=f"{digit} + sum = {digit} + {total} =",
                output=spell(added),
                variable=f"sum: {spell(added)} = {added % MODULUS}",
                remaining=" + ".join(map(str, problem[number + 1 :])),
            )
            total = added % MODULUS
