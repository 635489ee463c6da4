"""Copy: words are repeated.

For example:

    Copy: w7 w1 w7 [SEP] w7 w1 w7
"""

import dataclasses

from datasets.text_tasks.base import Template, TextTask
from datasets.text_tasks.symbols import make_words

NEXT = "[NEXT]"
"""Stands between two parts of an answer."""

DRAWN_WORDS = 100
"""Number of words that are drawn at random."""

REPEATED_WORDS = 6052
"""Number of words that are repeated, each once at each length.

So many that lengths 2 to 20 have 100,000 problems and 15% more.
"""
PAIRED_WORDS = 78
"""Number of words that are replaced, each by each other one at each length."""


class Words(TextTask):
    """A rearrangement of words; the length is their number.

    A problem is a tuple of the numbers of words. A subclass writes the answer
    by `rearrange`.

    Reference: Kazemnejad et al., 2023, section 3 and appendix D.1.
    https://arxiv.org/abs/2305.19466
    """

    symbols = make_words(DRAWN_WORDS)
    trained_lengths = range(2, 21)
    tested_lengths = range(21, 41)

    def draw(self, rng, place, number):
        """Draws uniform words, with repetition."""
        return tuple(rng.integers(0, DRAWN_WORDS, *place).tolist())

    def longest(self, place):
        """Returns one word: all problems of a length have the same number."""
        return (0,) * place[0]

    def fill(self, problem):
        """Writes the words and the answer."""
        words = [f"w{number}" for number in problem]
        return {"words": " ".join(words), "answer": self.rearrange(words)}

    def rearrange(self, words):
        """Returns the answer for a list of words."""
        raise NotImplementedError


class CopiedWords(Words):
    """Words that are copied."""

    templates = {
        "code": Template("Copy: {words} ", "[SEP] ", "{answer}"),
        "paper": Template(
            "Copy the following words: {words} . ", "", "{answer}"
        ),
    }


class RepeatedWord(CopiedWords):
    """One word, repeated; at each length each word comes up once."""

    symbols = make_words(REPEATED_WORDS)

    def count(self, place):
        """Returns the number of words."""
        return REPEATED_WORDS

    def draw(self, rng, place, number):
        """Returns a word, repeated."""
        (length,) = place
        # Other lengths begin with other words; 2417 is prime.
        word = (2417 * number + 1009 * length) % REPEATED_WORDS
        return (word,) * length


@dataclasses.dataclass(frozen=True, kw_only=True)
class Copy(CopiedWords):
    """Random words, then the same words."""

    def rearrange(self, words):
        """Returns the words."""
        return " ".join(words)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CopyTwice(CopiedWords):
    """Random words, then the same words twice, `[NEXT]` between them."""

    symbols = (*Words.symbols, NEXT)

    def rearrange(self, words):
        """Returns the words twice."""
        return " ".join([*words, NEXT, *words])


@dataclasses.dataclass(frozen=True, kw_only=True)
class CopyRepeated(RepeatedWord):
    """A word `n` times, then the same word `n` times."""

    def rearrange(self, words):
        """Returns the words."""
        return " ".join(words)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CopyRepeatedTwice(RepeatedWord):
    """A word `n` times, then the same word `2 * n` times."""

    def rearrange(self, words):
        """Returns the words twice."""
        return " ".join([*words, *words])


@dataclasses.dataclass(frozen=True, kw_only=True)
class CopyReplace(Words):
    """A word `n` times, then another word `n` times.

    At each length, each pair of different words comes up once.
    """

    templates = {
        "code": Template(
            "Replace {first} with {second} in {words} ", "[SEP] ", "{answer}"
        ),
    }
    symbols = make_words(PAIRED_WORDS)

    def count(self, place):
        """Returns the number of pairs."""
        return PAIRED_WORDS * (PAIRED_WORDS - 1)

    def draw(self, rng, place, number):
        """Returns both words and how often they are repeated."""
        (length,) = place
        # Other lengths begin with other pairs; 2417 is prime.
        pair = (2417 * number + 1009 * length) % self.count(place)
        first, other = divmod(pair, PAIRED_WORDS - 1)
        return first, other + (other >= first), length

    def longest(self, place):
        """Returns a pair: all problems of a length have the same number."""
        return 0, 1, place[0]

    def fill(self, problem):
        """Writes both words, and them repeated."""
        first, second, times = problem
        return {
            "first": f"w{first}",
            "second": f"w{second}",
            "words": " ".join([f"w{first}"] * times),
            "answer": " ".join([f"w{second}"] * times),
        }
