"""Sums of several numbers, and products with a factor of one or two digits.

For example, with the digits of the answer from right to left:

    $ ^ 6 5 3 + ^ 0 4 9 + ^ 9 0 0 = 2 0 6 1
    $ ^ 4 0 3 * x7 = 1 2 8 2
"""

import dataclasses
import re
from typing import ClassVar

from datasets.text_tasks.aligned import MARK, AlignedNumbers, MarkedAddition
from datasets.text_tasks.base import Alignment
from datasets.text_tasks.structured_digits import (
    FACTORS_OF_KIND,
    TERMS_OF_KIND,
    as_number,
    draw_parts,
    draw_terms,
)
from datasets.text_tasks.symbols import DIGITS, draw_number


@dataclasses.dataclass(frozen=True, kw_only=True)
class MarkedSum(MarkedAddition):
    """The sum of three to five numbers, with a mark before each.

    Zeros before shorter numbers make all equally long, and the sum has one
    digit more. The length of a problem is the largest number of digits.
    """

    counts: ClassVar[tuple] = (3, 4, 5)
    """Numbers of numbers."""

    typed = "12 + 345 + 6"

    def bins(self, lengths):
        """Returns the length of each number, for all their counts."""
        return [place for length in lengths for place in self.bins_at(length)]

    def bins_at(self, length):
        """Returns the length of each number, for all their counts."""
        return [(length,) * count for count in self.counts]

    def draw(self, rng, place, number):
        """Draws uniform numbers; half of the time all but one are shorter."""
        if rng.random() < 0.5:
            return super().draw(rng, place, number)
        drawn = TERMS_OF_KIND["shorter_second"](rng, place[0], len(place))
        return tuple(drawn[turn] for turn in rng.permutation(len(drawn)))

    def draw_kind(self, kind, rng, place):
        """Draws numbers of a kind, the first one of the bin's digits."""
        return TERMS_OF_KIND[kind](rng, place[0], len(place))

    def draw_structured(self, rng, place):
        """Draws numbers with structure, of the bin's digits."""
        return tuple(
            as_number(rng, digits)
            for digits in draw_terms(rng, place[0], len(place))
        )

    def read_problem(self, text):
        """Reads numbers of any digits, with spaces or without."""
        number = rf"[\s{MARK}]*[0-9][0-9\s]*"
        least, most = self.counts[0] - 1, self.counts[-1] - 1
        pattern = rf"\$?({number}(?:\+{number}){{{least},{most}}})=?\s*"
        found = re.fullmatch(pattern, text.strip())
        digits = re.sub(rf"[\s{MARK}]", "", found[1]) if found else ""
        return tuple(map(int, digits.split("+"))) if digits else None


UNITS = tuple(f"x{digit}" for digit in range(10))
"""Words of the last digit of a factor."""

TENS = tuple(f"y{digit}" for digit in range(10))
"""Words of its first digit."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DigitMultiplication(AlignedNumbers):
    """The product of a number and one digit, least significant digit first.

    The digit is a word of its own, which is no item: its coupled position is
    0, like that of the first word. A model whose encoding hides far keys but
    not these reads the factor at every digit. The mark is an item. The length
    of a problem is the number of digits of the number; the product has one
    digit more:

        $ ^ 4 0 3 * x7 = 1 2 8 2
    """

    operator = "*"
    factors: ClassVar[tuple] = (UNITS,)
    """Words of each digit of the factor, the first digit first."""

    symbols = (*DIGITS, operator, MARK, *UNITS)
    alignment = Alignment((*DIGITS, MARK), "=", (operator,))
    kinds = tuple(FACTORS_OF_KIND)
    typed = "403 * 7"

    @property
    def most(self):
        """The largest factor."""
        return 10 ** len(self.factors) - 1

    def bins(self, lengths):
        """Returns the numbers of digits of the number."""
        return [(length,) for length in lengths]

    def bins_at(self, length):
        """Returns the number of digits of the number."""
        return [(length,)]

    def draw(self, rng, place, number):
        """Draws a uniform number of the bin's digits and a factor."""
        return draw_number(rng, *place), int(rng.integers(self.most + 1))

    def draw_kind(self, kind, rng, place):
        """Draws a number and a factor of a kind."""
        draw_digits, draw_factor = FACTORS_OF_KIND[kind]
        number = as_number(rng, draw_digits(rng, *place))
        return number, draw_factor(rng, self.most)

    def draw_structured(self, rng, place):
        """Draws a number with structure, and a uniform factor."""
        number = as_number(rng, draw_parts(rng, *place))
        return number, int(rng.integers(self.most + 1))

    def longest(self, place):
        """Returns nines: all problems of a length have equally many words."""
        return 10 ** place[0] - 1, self.most

    def read_problem(self, text):
        """Reads a number and a factor, with spaces or without."""
        text = re.sub(rf"[\s{MARK}xy]", "", text.strip().removeprefix("$"))
        found = re.fullmatch(r"([0-9]+)\*([0-9]+)=?", text)
        if not found or int(found[2]) > self.most:
            return None
        return int(found[1]), int(found[2])

    def write_runs(self, problem):
        """Returns the digits of the number after a mark, and the factor."""
        number, factor = problem
        digits = map(int, str(factor).zfill(len(self.factors)))
        words = [
            known[digit]
            for known, digit in zip(self.factors, digits, strict=True)
        ]
        return [MARK, *str(number), self.operator, *words]

    def respond(self, problem):
        """Returns the digits of the product from right to left."""
        number, factor = problem
        width = len(str(number)) + len(self.factors)
        return [*str(number * factor).zfill(width)[::-1]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoDigitMultiplication(DigitMultiplication):
    """The product of a number and one from 00 to 99, least significant first.

    Each digit of the factor is a word of its own, and the product has two
    digits more than the number:

        $ ^ 4 0 3 * y2 x5 = 5 7 0 0 1
    """

    factors = (TENS, UNITS)
    symbols = (*DigitMultiplication.symbols, *TENS)
    typed = "403 * 25"
