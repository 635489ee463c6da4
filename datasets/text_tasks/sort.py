"""Sort: a list of words or of numbers in order.

For example:

    Sort the following list [ w7, w1, w7 ]. The sorted list is [ w1, w7, w7 ].
"""

import dataclasses

from datasets.text_tasks.base import Step, Template, TextTask
from datasets.text_tasks.symbols import (
    DIGITS,
    make_words,
    read_number,
    read_word,
    spell,
)


class ListToSort(TextTask):
    """A list of items in order; the length is their number.

    A subclass writes an item by `spell_item`.

    Reference: Kazemnejad et al., 2023, section 3 and appendix D.1.
    https://arxiv.org/abs/2305.19466
    """

    templates = {
        "code": Template(
            "Sort the following list [ {items} ]. ",
            "",
            "The sorted list is [ {answer} ].",
            ", ",
        ),
        "paper": Template(
            "Sort the following numbers: {items} ? ",
            "",
            "The answer is {answer}.",
            " ",
        ),
    }
    step_words = "[ ] , The minimum of the unsorted portion"
    trained_lengths = range(4, 9)
    tested_lengths = range(9, 17)

    def spell_item(self, item):
        """Returns the text of an item."""
        raise NotImplementedError

    def read_item(self, words):
        """Returns an item; `None`: it is none."""
        raise NotImplementedError

    def fill(self, problem):
        """Writes the items in their order and sorted."""
        return {
            "items": self._write(problem),
            "answer": self._write(sorted(problem)),
        }

    def read_value(self, words):
        """Reads a list of items, a tuple."""
        if self.wording.between == " ":
            parts = [[word] for word in words]
        else:
            text = " ".join(words).split(" , ")
            parts = [part.split() for part in text]
        items = tuple(map(self.read_item, parts))
        return None if None in items else items

    def steps(self, problem):
        """Swaps the first item with the smallest one that is left."""
        items = list(problem)
        while items:
            first, smallest = items[0], min(items)
            items[items.index(smallest)] = first
            del items[0]
            yield Step(
                input=self.spell_item(first),
                computation="The minimum of the unsorted portion",
                output=self.spell_item(smallest),
                variable=None,
                remaining=f"[ {self._write(items)} ]",
            )

    def _write(self, items):
        return self.wording.between.join(map(self.spell_item, items))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sort(ListToSort):
    """A list of words in the order of their numbers, each one token.

    Args:
        template: str. Key of `templates`.
    """

    symbols = (*make_words(50), ",")

    def draw(self, rng, place, number):
        """Draws uniform words, with repetition."""
        return tuple(rng.integers(0, 50, *place).tolist())

    def longest(self, place):
        """Returns one word: all lists of a length have equally many words."""
        return (0,) * place[0]

    def spell_item(self, item):
        """Returns a word."""
        return f"w{item}"

    def read_item(self, words):
        """Reads a word."""
        return read_word(words)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SortMultiDigit(ListToSort):
    """A list of numbers from 10 to 9999, digit by digit.

    Args:
        template: str. Key of `templates`.
    """

    symbols = (*DIGITS, ",")
    templates = {
        **ListToSort.templates,
        "paper": ListToSort.templates["paper"]._replace(between=", "),
    }

    def draw(self, rng, place, number):
        """Draws uniform numbers, with repetition."""
        return tuple(rng.integers(10, 10_000, *place).tolist())

    def longest(self, place):
        """Returns numbers of four digits."""
        return (9999,) * place[0]

    def spell_item(self, item):
        """Spells a number."""
        return spell(item)

    def read_item(self, words):
        """Reads a number."""
        return read_number(words)
