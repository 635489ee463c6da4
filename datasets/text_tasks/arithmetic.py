"""Sums of several numbers, and products with a factor of one or two digits.

For example, with the digits of the answer from right to left:

    $ ^ 6 5 + ^ 0 4 + ^ 9 0 + ^ 0 0 + ^ 0 0 = 9 5 1
    $ x7 x7 x7 * ^ 4 0 3 = 1 2 8 2
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
    digit more. Zeros fill three or four numbers up to five, because attention
    averages over the digits at a position, and a sum follows from a mean only
    if the count is known. The length of a problem is the largest number of
    digits:

        $ ^ 6 5 + ^ 0 4 + ^ 9 0 + ^ 0 0 + ^ 0 0 = 9 5 1
    """

    counts: ClassVar[tuple] = (3, 4, 5)
    """Possible counts of numbers."""

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

    def write_runs(self, problem):
        """Returns the digits of five numbers, a mark before each."""
        missing = self.counts[-1] - len(problem)
        return super().write_runs((*problem, *(0,) * missing))

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
    """The product of one digit and a number, least significant digit first.

    The factor is a word of its own, which occurs once for each digit of the
    number. Its coupled positions are those of the digits, so a model that
    attends only to nearby positions reads the factor at every digit. The length
    of a problem is the number of digits of the number; the product has one
    digit more:

        $ x7 x7 x7 * ^ 4 0 3 = 1 2 8 2
    """

    operator = "*"
    factors: ClassVar[tuple] = (UNITS,)
    """Words of each digit of the factor, the first digit first."""

    symbols = (*DIGITS, operator, MARK, *UNITS)
    alignment = Alignment((*DIGITS, MARK, *UNITS), "=", (operator,))
    kinds = tuple(FACTORS_OF_KIND)
    typed = "7 * 403"

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
        """Draws a factor and a uniform number of the bin's digits."""
        return int(rng.integers(self.most + 1)), draw_number(rng, *place)

    def draw_kind(self, kind, rng, place):
        """Draws a factor and a number of a kind."""
        draw_digits, draw_factor = FACTORS_OF_KIND[kind]
        number = as_number(rng, draw_digits(rng, *place))
        return draw_factor(rng, self.most), number

    def draw_structured(self, rng, place):
        """Draws a factor and a number with structure."""
        number = as_number(rng, draw_parts(rng, *place))
        factor = draw_parts(rng, len(self.factors))
        return int("".join(map(str, factor))), number

    def longest(self, place):
        """Returns nines: all problems of a length have equally many words."""
        return self.most, 10 ** place[0] - 1

    def read_problem(self, text):
        """Reads a factor and a number in any order, with spaces or without."""
        # Repeated words of the prompt are one digit of the factor.
        text = re.sub(
            r"([xy](\d))(\s*\1)*(\s*\*\s*(?=x))?",
            r"\2",
            text.strip().removeprefix("$"),
        )
        text = re.sub(rf"[\s{MARK}]", "", text)
        found = re.fullmatch(r"([0-9]+)\*([0-9]+)=?", text)
        factor, number = map(int, found.groups()) if found else (-1, -1)
        if factor > self.most:
            factor, number = number, factor
        return (factor, number) if 0 <= factor <= self.most else None

    def write_runs(self, problem):
        """Returns runs of the factor's words, and the digits after a mark."""
        factor, number = problem
        digits, runs = [*str(number)], []
        for words, digit in zip(
            self.factors, str(factor).zfill(len(self.factors)), strict=True
        ):
            runs += [words[int(digit)]] * len(digits) + [self.operator]
        return [*runs, MARK, *digits]

    def respond(self, problem):
        """Returns the digits of the product from right to left."""
        factor, number = problem
        width = len(str(number)) + len(self.factors)
        return [*str(number * factor).zfill(width)[::-1]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoDigitMultiplication(DigitMultiplication):
    """The product of a two-digit factor and a number, last digit first.

    Each digit of the factor is a word of its own, and the product has two
    digits more than the number:

        $ y2 y2 y2 * x5 x5 x5 * ^ 4 0 3 = 5 7 0 0 1
    """

    factors = (TENS, UNITS)
    symbols = (*DigitMultiplication.symbols, *TENS)
    alignment = Alignment((*DIGITS, MARK, *UNITS, *TENS), "=", ("*",))
    typed = "25 * 403"


TOTALS = tuple(f"t{total}" for total in range(180))
"""Words of the totals of columns: `t112` is the digit 2 and the carry 11."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CarriedMultiplication(TwoDigitMultiplication):
    """The same products, with the carry in the word of each digit.

    A word of the answer is the total of a column: two products of digits and
    the carry of the column before, which is the total there without its last
    digit. With the digits of the product alone, the carry is known only modulo
    10, and a model has to recover the rest of it from several columns. In the
    example `t7` is 5 times 0 plus 2 times 3 and the carry of `t15`. The last
    digits of the words are those of the product:

        $ y2 y2 y2 * x5 x5 x5 * ^ 4 0 3 = t15 t7 t20 t10 t1
    """

    symbols = (*TwoDigitMultiplication.symbols, *TOTALS)
    alignment = Alignment((*DIGITS, MARK, *UNITS, *TENS, *TOTALS), "=", ("*",))

    def respond(self, problem):
        """Returns the totals of the columns from right to left."""
        factor, number = problem
        digits = [*map(int, str(number)[::-1]), 0, 0]
        tens, units = divmod(factor, 10)
        words, total = [], 0
        for digit, before in zip(digits, [0, *digits], strict=False):
            total = units * digit + tens * before + total // 10
            words.append(TOTALS[total])
        return words

    def read_value(self, words):
        """Returns the totals, all of them right or not."""
        return tuple(words) if set(words) <= set(TOTALS) else None


ADDED = tuple(f"p{digit}" for digit in range(10))
"""Words of the digits that are added to a product."""

COLUMNS = TOTALS[:100]
"""Words of all totals of one product of digits, a digit and a carry."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiplyAdd(DigitMultiplication):
    """The product of one digit and a number, plus another number.

    Both numbers are equally long, with zeros before the shorter one. Digits
    that are added are other words than those of the number, because they share
    positions. A word of the answer is the total of a column: a product of
    digits, a digit, and the carry, which is the total before without its last
    digit. The last digits are those of the result. In the example, the totals
    are 7 times 3 and 9, 7 times 0 and 5 and the carry 3, and so on:

        $ x7 x7 x7 * ^ 4 0 3 + ^ p0 p5 p9 = t30 t8 t28 t2

    A problem is what is added, the factor, and the number. It is one step of
    long multiplication: the last digit of the result is one of the product, and
    the others are what the next digit of the factor adds to.
    """

    symbols = (*DigitMultiplication.symbols, "+", *ADDED, *COLUMNS)
    alignment = Alignment(
        (*DIGITS, MARK, *UNITS, *ADDED, *COLUMNS), "=", ("*", "+")
    )
    typed = "7 * 403 + 59"

    def draw(self, rng, place, number):
        """Draws uniform numbers; half of the time, what is added is shorter."""
        product = super().draw(rng, place, number)
        fewer = int(rng.integers(1, place[0] + 1))
        digits = place[0] if rng.random() < 0.5 else fewer
        return draw_number(rng, digits), *product

    def draw_kind(self, kind, rng, place):
        """Draws a factor and two numbers of a kind."""
        product = super().draw_kind(kind, rng, place)
        draw_digits, _ = FACTORS_OF_KIND[kind]
        return as_number(rng, draw_digits(rng, *place)), *product

    def draw_structured(self, rng, place):
        """Draws a factor and two numbers with structure."""
        product = super().draw_structured(rng, place)
        added = draw_parts(rng, *place)
        return int("".join(map(str, added))), *product

    def longest(self, place):
        """Returns nines: all problems of a length have equally many words."""
        return 0, *super().longest(place)

    def read_problem(self, text):
        """Reads a product and a number to add to it."""
        product, plus, added = text.strip().removesuffix("=").partition("+")
        problem = super().read_problem(product)
        added = re.sub(rf"[\s{MARK}p]", "", added)
        if problem is None or not (plus and re.fullmatch("[0-9]+", added)):
            return None
        return int(added), *problem

    def state(self, problem):
        """Writes a problem as people do."""
        added, factor, number = problem
        return f"{factor} * {number} + {added}"

    def write_runs(self, problem):
        """Returns the runs of the product, and the digits that are added."""
        added, factor, number = problem
        width = len(str(max(number, added)))
        return [
            *([UNITS[factor]] * width),
            *(self.operator, MARK, *str(number).zfill(width)),
            *("+", MARK),
            *(ADDED[int(digit)] for digit in str(added).zfill(width)),
        ]

    def respond(self, problem):
        """Returns the totals of the columns from right to left."""
        added, factor, number = problem
        total, words = 0, []
        for _ in range(len(str(max(number, added))) + 1):
            number, digit = divmod(number, 10)
            added, other = divmod(added, 10)
            total = factor * digit + other + total // 10
            words.append(TOTALS[total])
        return words

    def read_value(self, words):
        """Returns the totals, all of them right or not."""
        return tuple(words) if set(words) <= set(COLUMNS) else None
