"""Reverse: words in reverse order.

For example:

    Reverse: w7 w1 w2 [SEP] w2 w1 w7
"""

import dataclasses

from datasets.text_tasks.base import Template
from datasets.text_tasks.copy import NEXT, Words


class ReversedWords(Words):
    """Random words that are reversed."""

    symbols = (*Words.symbols, NEXT)

    templates = {
        "code": Template("Reverse: {words} ", "[SEP] ", "{answer}"),
        "paper": Template(
            "Reverse the following words: {words} . ", "", "{answer}"
        ),
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reverse(ReversedWords):
    """Random words, then the same words, last word first."""

    def rearrange(self, words):
        """Returns the words in reverse order."""
        return " ".join(words[::-1])


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReverseTwice(ReversedWords):
    """Random words, then twice the same words, last word first."""

    def rearrange(self, words):
        """Returns the words in reverse order, twice."""
        return " ".join([*words[::-1], NEXT, *words[::-1]])


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReverseAndBack(ReversedWords):
    """Random words, then the same words, last word first, then as they were."""

    def rearrange(self, words):
        """Returns the words in reverse order and in their own."""
        return " ".join([*words[::-1], NEXT, *words])
