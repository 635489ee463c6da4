"""Addition: the sum of two numbers, digit by digit.

For example:

    Compute 5 3 + 9 ? The answer is 6 2.
"""

import dataclasses
import itertools

from datasets.text_tasks.base import Step, Template, TextTask
from datasets.text_tasks.symbols import (
    DIGITS,
    draw_number,
    read_number,
    spell,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Addition(TextTask):
    """The sum of two numbers, in bins of the digits of each.

    The length of a problem is the larger number of digits.

    Reference: Kazemnejad et al., 2023, section 3 and appendix D.1.
    https://arxiv.org/abs/2305.19466
    """

    templates = {
        "code": Template(
            "Compute {first} + {second} ? ", "", "The answer is {answer}."
        ),
        "paper": Template(
            "Compute: {first} + {second} ? ", "", "The answer is {answer}."
        ),
    }
    symbols = DIGITS
    step_words = ", + = carry :"
    trained_lengths = range(1, 9)
    tested_lengths = range(9, 17)

    def bins(self, lengths):
        """Returns all pairs of numbers of digits."""
        return list(itertools.product(lengths, repeat=2))

    def bins_at(self, length):
        """Returns the pairs of numbers of digits, the larger one given."""
        pairs = itertools.product(range(1, length + 1), repeat=2)
        return [pair for pair in pairs if max(pair) == length]

    def draw(self, rng, place, number):
        """Draws two uniform numbers of the bin's digits."""
        return tuple(draw_number(rng, digits) for digits in place)

    def longest(self, place):
        """Returns nines, whose sum has one more digit."""
        return tuple(10**digits - 1 for digits in place)

    def fill(self, problem):
        """Spells both numbers and their sum."""
        first, second = problem
        return {
            "first": spell(first),
            "second": spell(second),
            "answer": spell(first + second),
        }

    def read_value(self, words):
        """Reads a number."""
        return read_number(words)

    def steps(self, problem):
        """Adds the digits from right to left, at last the carry, if any."""
        width = max(len(str(number)) for number in problem)
        carry = 0
        for place in range(width + 1):
            first, second = (n // 10**place % 10 for n in problem)
            if place == width and not carry:
                return
            total = first + second + carry
            # Zeros fill the shorter number up; nothing is left after both.
            rest = [
                spell(n // 10 ** (place + 1)) if place + 1 < width else ""
                for n in problem
            ]
            yield Step(
                input=f"{first}, {second}",
                computation=f"{first} + {second} + carry = "
                f"{spell(first + second)} + {carry} = {spell(total)}",
                output=str(total % 10),
                variable=f"carry: {total // 10}",
                remaining=" + ".join(rest),
            )
            carry = total // 10
