"""Aligned tasks: every word of the answer belongs to words of the prompt.

For example, with the digits of a sum from right to left:

    $ 0 5 3 + 4 9 7 = 0 5 5 0
"""

import dataclasses
import itertools
import re

from datasets.text_tasks.base import Alignment, Template, TextTask
from datasets.text_tasks.structured_digits import (
    DIGITS_OF_KIND,
    TERMS_OF_KIND,
    as_number,
    draw_parts,
    draw_terms,
)
from datasets.text_tasks.symbols import DIGITS, draw_number, read_number

MARK = "^"
"""Word before the first digit of a number."""


class Aligned(TextTask):
    """Digits whose answer is aligned with them.

    A problem is a tuple of the numbers or digits in the prompt. A subclass
    writes the prompt and the answer by `write_runs` and `respond`.

    Reference: Cho et al., 2024, section 3. https://arxiv.org/abs/2405.20671
    """

    templates = {"code": Template("$ {prompt} ", "= ", "{answer}")}
    symbols = DIGITS
    trained_lengths = range(1, 11)
    tested_lengths = (20, 50, 100)

    def fill(self, problem):
        """Writes the prompt and the answer, word by word."""
        return {
            "prompt": " ".join(self.write_runs(problem)),
            "answer": " ".join(self.respond(problem)),
        }

    def write_runs(self, problem):
        """Returns the words of a prompt, a list of str."""
        raise NotImplementedError

    def respond(self, problem):
        """Returns the words of an answer, a list of str."""
        raise NotImplementedError


class AlignedDigits(Aligned):
    """Random digits, one word each; the length is their number."""

    alignment = Alignment(DIGITS, "=", order="ascending")
    kinds = tuple(DIGITS_OF_KIND)
    typed = "1 0 1"
    choices = 10
    """Number of digits to draw from."""

    def draw(self, rng, place, number):
        """Draws uniform digits."""
        return tuple(rng.integers(0, self.choices, *place).tolist())

    def draw_kind(self, kind, rng, place):
        """Draws digits of a kind."""
        return tuple(DIGITS_OF_KIND[kind](rng, *place, self.choices))

    def draw_structured(self, rng, place):
        """Draws digits in parts with a structure of their own."""
        return tuple(draw_parts(rng, *place, self.choices))

    def read_problem(self, text):
        """Reads digits, with spaces or without."""
        found = re.fullmatch(r"\$?([0-9\s]+)=?\s*", text.strip())
        digits = tuple(map(int, "".join(found[1].split()))) if found else ()
        return digits if digits and max(digits) < self.choices else None

    def longest(self, place):
        """Returns zeros: all problems of a length have equally many words."""
        return (0,) * place[0]

    def write_runs(self, problem):
        """Returns the digits."""
        return [str(digit) for digit in problem]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignedCopy(AlignedDigits):
    """Digits, then the same digits."""

    def respond(self, problem):
        """Returns the digits."""
        return self.write_runs(problem)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignedReverse(AlignedDigits):
    """Digits, then the same digits, last digit first.

    Differs from the paper: positions are the mirror image of those of its code.
    There they rise along the digits and to the equals sign, which has the
    largest one, and fall along the answer. With `CoupledPositions` they fall to
    the equals sign and rise along the answer. The same words share a position.
    """

    alignment = Alignment(DIGITS, "=")

    def respond(self, problem):
        """Returns the digits in reverse order."""
        return self.write_runs(problem)[::-1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignedParity(AlignedDigits):
    """Bits, then for each whether the number of ones up to it is odd."""

    choices = 2

    def respond(self, problem):
        """Returns the parities so far; the last one is that of all bits."""
        return [str(total % 2) for total in itertools.accumulate(problem)]


class AlignedNumbers(Aligned):
    """Numbers with an operator between them.

    The answer has its least significant digit first.
    """

    operator: str
    """A word."""

    def bins(self, lengths):
        """Returns all pairs of numbers of digits."""
        return list(itertools.product(lengths, repeat=2))

    def bins_at(self, length):
        """Returns the pair of two numbers of equally many digits."""
        return [(length, length)]

    def draw(self, rng, place, number):
        """Draws uniform numbers of the bin's digits."""
        return tuple(draw_number(rng, digits) for digits in place)

    def longest(self, place):
        """Returns nines; padding makes all problems of a bin equally long."""
        return tuple(10**digits - 1 for digits in place)

    def read_value(self, words):
        """Returns the digits; zeros at their end count."""
        return None if read_number(words) is None else tuple(words)

    def describe_answer(self, problem, words):
        """Writes the answer from left to right, and whether it is right."""
        if self.read_answer(list(words)) is None:
            return None
        right = self.respond(problem)
        written, known = (self.read_digits(each) for each in (words, right))
        is_right = list(words) == right
        verdict = "right" if is_right else f"wrong, it is {known}"
        return f"{self.state(problem)} = {written} ({verdict})"

    def read_digits(self, words):
        """Returns the number whose digits are the last ones of words."""
        return int("".join(word[-1] for word in reversed(words)))

    def state(self, problem):
        """Writes a problem as people do."""
        return f" {self.operator} ".join(map(str, problem))


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignedAddition(AlignedNumbers):
    """The sum of two numbers, in bins of the digits of each.

    Zeros before the shorter number make both equally long, and the sum has
    one digit more. The length of a problem is the larger number of digits;
    in evaluation at a length both numbers have as many.
    """

    operator = "+"
    symbols = (*DIGITS, operator)
    alignment = Alignment(DIGITS, "=", (operator,))
    kinds = tuple(TERMS_OF_KIND)
    typed = "12 + 345"

    def draw_kind(self, kind, rng, place):
        """Draws two numbers of a kind, the first one as long as the longer."""
        return TERMS_OF_KIND[kind](rng, max(place))

    def draw_structured(self, rng, place):
        """Draws two numbers with structure, of the bin's digits."""
        pair = draw_terms(rng, max(place))
        return tuple(
            as_number(rng, digits[-count:])
            for digits, count in zip(pair, place, strict=True)
        )

    def read_problem(self, text):
        """Reads two numbers of any digits, with spaces or without."""
        number = rf"[\s{MARK}]*([0-9][0-9\s]*)"
        found = re.fullmatch(rf"\$?{number}\+{number}=?\s*", text.strip())
        return found and tuple(int("".join(n.split())) for n in found.groups())

    def write_runs(self, problem):
        """Returns the digits of both numbers."""
        width = len(str(max(problem)))
        numbers = [str(number).zfill(width) for number in problem]
        return [*self.operator.join(numbers)]

    def respond(self, problem):
        """Returns the digits of the sum from right to left."""
        width = len(str(max(problem))) + 1
        return [*str(sum(problem)).zfill(width)[::-1]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MarkedAddition(AlignedAddition):
    """The same sums, with a word before the first digit of each number.

    The mark is an item: its coupled position is that of the last digit of the
    sum. So wherever a number ends there is a key nearby that says so:

        $ ^ 6 5 3 + ^ 0 4 9 = 2 0 7 0

    Differs from the paper, where nothing marks the ends of numbers: a model
    that sees only near positions then has no key that tells it that
    99...9 + 99...9 has one more digit.
    """

    symbols = (*AlignedAddition.symbols, MARK)
    alignment = Alignment((*DIGITS, MARK), "=", ("+",))

    def write_runs(self, problem):
        """Returns the digits of both numbers, a mark before each."""
        words = [MARK]
        for word in super().write_runs(problem):
            words += [word, MARK] if word == self.operator else [word]
        return words


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReversedAddition(AlignedAddition):
    """The same sums, all numbers with their least significant digit first.

    Places of digits, counted from the first digit of each number, are then
    those of their significance, as `AbacusPositions` needs them.

    Differs from the paper: the shorter number has zeros after it.

    Reference: McLeish et al., 2024, section 3. https://arxiv.org/abs/2405.17399
    """

    alignment = Alignment(DIGITS, "=", ("+",), order="ascending")

    def read_problem(self, text):
        """Reads two numbers; after a `$`, digits are those of a prompt."""
        found = super().read_problem(text)
        if not (found and text.strip().startswith("$")):
            return found
        digits = re.findall("[0-9]+", "".join(text.split()))
        return tuple(int(number[::-1]) for number in digits)

    def write_runs(self, problem):
        """Returns the digits of both numbers from right to left."""
        return super().write_runs(problem[::-1])[::-1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignedMultiplication(AlignedNumbers):
    """The product of a number and one from 00 to 99.

    The second number always has two digits. The length of a problem is the
    number of digits of the first. The product has two digits more, zeros at its
    end included.

    Differs from the paper: positions are the mirror image of those of its code.
    There they rise along each number to the sign after it, both signs have the
    largest one, and they fall along the answer. With `CoupledPositions` the
    signs have the smallest position, and positions rise along the answer. The
    same words share a position.
    """

    operator = "*"
    symbols = (*DIGITS, operator)
    alignment = Alignment(DIGITS, "=", (operator,))

    def bins(self, lengths):
        """Returns the numbers of digits of both numbers."""
        return [(length, 2) for length in lengths]

    def bins_at(self, length):
        """Returns the numbers of digits of both numbers."""
        return [(length, 2)]

    def draw(self, rng, place, number):
        """Draws a uniform number of the bin's digits and one below 100."""
        return draw_number(rng, place[0]), int(rng.integers(100))

    def write_runs(self, problem):
        """Returns the digits of both numbers."""
        first, second = problem
        return [*str(first), self.operator, *f"{second:02d}"]

    def respond(self, problem):
        """Returns the digits of the product from right to left."""
        first, second = problem
        width = len(str(first)) + 2
        return [*str(first * second).zfill(width)[::-1]]


HINTS = tuple(f"h{number}" for number in range(256))
"""Words that name the place of a digit, in their order."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HintedAddition(AlignedNumbers):
    """The sum of two numbers, with a word before each digit for its place.

    All numbers have their least significant digit first. Digits of the same
    significance have the same hint; an example takes its hints from a random
    place of a fixed list on. A problem is the two numbers and that place.

    Reference: Zhou et al., 2024, section 3. https://arxiv.org/abs/2402.09371
    """

    operator = "+"
    symbols = (*DIGITS, operator, *HINTS)

    def draw(self, rng, place, number):
        """Draws two numbers and the place of the first hint."""
        places = len(HINTS) - max(place)
        return *super().draw(rng, place, number), int(rng.integers(places))

    def longest(self, place):
        """Returns nines, whose sum has one more digit.

        Raises:
            ValueError: If there are fewer hints than digits of the sum.
        """
        if max(place) >= len(HINTS):
            raise ValueError(
                f"HintedAddition has {len(HINTS)} hints, so numbers may have "
                f"{len(HINTS) - 1} digits; got {max(place)}."
            )
        return *super().longest(place), 0

    def write_runs(self, problem):
        """Returns the digits of both numbers with their hints."""
        first, second, place = problem
        return [
            *_add_hints(first, place),
            self.operator,
            *_add_hints(second, place),
        ]

    def respond(self, problem):
        """Returns the digits of the sum with their hints."""
        first, second, place = problem
        return _add_hints(first + second, place)

    def read_value(self, words):
        """Returns the digits and their hints."""
        digits = _drop_hints(words)
        return None if read_number(digits) is None else tuple(words)

    def read_digits(self, words):
        """Returns the number without the hints of its digits."""
        return super().read_digits(_drop_hints(words))

    def state(self, problem):
        """Writes the sum without its hints."""
        return super().state(problem[:2])


def _add_hints(number, place):
    """Returns the digits from right to left, each after its hint."""
    digits = str(number)[::-1]
    hints = HINTS[place : place + len(digits)]
    return list(itertools.chain.from_iterable(zip(hints, digits, strict=True)))


def _drop_hints(words):
    return [word for word in words if word not in HINTS]
