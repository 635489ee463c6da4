"""Base class of tasks in text form.

Python draws a problem from a NumPy generator whose seed is the number of the
problem, so that every problem can be drawn at any time, on any machine.
"""

import abc
import dataclasses
import re
import string
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

TEMPLATES = ("code", "paper")
"""Wordings: of the published code, and of the paper's appendix D.1."""

WORD = r"\[(?:SEP|NEXT)\]|\*\*|[A-Za-z_]+[0-9]*|'s|\S"
"""Regular expression of a word."""


class TextTaskError(Exception):
    """Data are missing or not as expected; the message says what to do."""


def split_words(text):
    """Splits a text into the words of its vocabulary.

    A word is a run of letters with the digits after it, a digit, `'s`, `**`,
    `[SEP]`, `[NEXT]` or another character. Spaces only separate words.

    >>> split_words("The answer is -1 2.")
    ['The', 'answer', 'is', '-', '1', '2', '.']
    """
    return re.findall(WORD, text)


class Step(NamedTuple):
    """A step of a scratchpad; `None` where the task has no such field.

    Attributes:
        input: str. The input of the step.
        computation: str. The computation, written out.
        output: str. Its result.
        variable: str. The value that it passes to the next step.
        remaining: str. The input that is still unread.
    """

    input: str
    computation: str
    output: str
    variable: str | None
    remaining: str


class Template(NamedTuple):
    """The wording of a task.

    Attributes:
        prompt: str with the task's fields in braces.
        separator: str. Stands between prompt and answer.
        answer: str with `{answer}`.
        between: str. Stands between the parts of a list in these.
    """

    prompt: str
    separator: str
    answer: str
    between: str = ""


class Alignment(NamedTuple):
    """Which words of prompts and answers belong together.

    Attributes:
        items: Tuple of str. Words that have a counterpart, such as digits.
        end_of_prompt: str. The word that answers follow.
        separators: Tuple of str. Words between the runs of items of a prompt.
        order: str. `"descending"`: the first item of an answer belongs to the
            last item of each run; `"ascending"`: to the first one.
    """

    items: tuple
    end_of_prompt: str
    separators: tuple = ()
    order: str = "descending"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextTask(abc.ABC):
    """Base class of tasks in text form.

    A problem is what a subclass likes, such as a pair of numbers, and is drawn
    in a bin, such as the numbers of their digits.

    Args:
        template: str. Key of `templates`.

    Attributes:
        templates: Dict from keys, those of `TEMPLATES`, to `Template`s.
        symbols: Tuple of str. Words of problems and answers that are not in
            the templates.
        step_words: str. Words of a scratchpad's steps; `None`: the task has no
            scratchpad.
        alignment: `Alignment` of prompts and answers; `None`: words of an
            answer have no counterparts.
        kinds: Tuple of str. Kinds of problems that `draw_kind` draws; empty:
            the task has one kind.
        typed: str. A problem as a person may type it, as `read_problem` reads
            it; empty: the task takes only its own words.
        ignores_case: bool. Whether answers are compared without case.
        trained_lengths: Increasing ints. Lengths of published training data.
        tested_lengths: Increasing ints. Lengths of published test data.
        digest: bytes that differ where other data are read; empty: all data
            are computed.

    Raises:
        ValueError: If there is no such template.

    Reference: Kazemnejad et al., 2023, section 3 and appendix D.1.
    https://arxiv.org/abs/2305.19466
    """

    template: str = "code"

    templates: ClassVar[Mapping[str, Template]]
    symbols: ClassVar[tuple]
    step_words: ClassVar[str | None] = None
    alignment: ClassVar[Alignment | None] = None
    kinds: ClassVar[tuple] = ()
    typed: ClassVar[str] = ""
    ignores_case: ClassVar[bool] = False
    trained_lengths: ClassVar[Sequence]
    tested_lengths: ClassVar[Sequence]
    digest: ClassVar[bytes] = b""

    def __post_init__(self):
        """Raises `ValueError` for an unknown template."""
        if self.template not in self.templates:
            raise ValueError(
                f"{type(self).__name__} has the templates "
                f"{', '.join(self.templates)}; got {self.template!r}."
            )

    @property
    def wording(self):
        """The `Template` in use."""
        return self.templates[self.template]

    @property
    def words(self):
        """All words of prompts, scratchpads and answers, a sorted tuple."""
        literals = [
            literal
            for text in self.wording
            for literal, *_ in string.Formatter().parse(text)
        ]
        known = split_words(" ".join([*literals, self.step_words or ""]))
        return tuple(sorted({*known, *self.symbols}))

    def bins(self, lengths):
        """Returns the bins of training problems of some lengths.

        Args:
            lengths: Increasing ints.

        Returns:
            List of tuples of int.
        """
        return [(length,) for length in lengths]

    def bins_at(self, length):
        """Returns the bins of evaluation problems of a length."""
        return [(length,)]

    def count(self, place):
        """Returns how many problems a bin has; `None`: no end is known."""
        return None

    @abc.abstractmethod
    def draw(self, rng, place, number):
        """Draws a problem.

        Args:
            rng: `numpy.random.Generator`.
            place: Tuple of int, a bin.
            number: int, at least 0. Number of the problem in its bin; a task
                with few problems may have each of them once.
        """

    def draw_kind(self, kind, rng, place):
        """Draws a problem of one of `kinds`, to evaluate."""
        raise NotImplementedError

    def draw_structured(self, rng, place):
        """Draws a training problem with structure; for tasks with `kinds`."""
        raise NotImplementedError

    @abc.abstractmethod
    def longest(self, place):
        """Returns a problem of a bin whose text has the most words."""

    @abc.abstractmethod
    def fill(self, problem):
        """Returns the fields of the templates, a dict of str."""

    def steps(self, problem):
        """Returns the `Step`s of a scratchpad."""
        raise NotImplementedError

    def write_prompt(self, problem):
        """Returns the prompt with its separator."""
        wording = self.wording
        return wording.prompt.format(**self.fill(problem)) + wording.separator

    def write_answer(self, problem):
        """Returns the answer."""
        return self.wording.answer.format(**self.fill(problem))

    def read_problem(self, text):
        """Reads a problem as a person may type it, such as `12 + 345`.

        Returns:
            A problem; `None`: it is none, or the task takes only its own words.
        """
        return None

    def describe_answer(self, problem, words):
        """Writes a problem with an answer to it as a person would.

        Args:
            problem: A problem.
            words: List of str. An answer, right or wrong.

        Returns:
            str; `None`: the answer is no answer, or is easy to read as it is.
        """
        return None

    def read_answer(self, words):
        """Reads what an answer says.

        Args:
            words: List of str. An answer, without its scratchpad.

        Returns:
            A value that equals that of another answer if both say the same;
            `None`: this is no answer.
        """
        before, after = (
            split_words(text) for text in self.wording.answer.split("{answer}")
        )
        inside = words[len(before) : len(words) - len(after)]
        if words != [*before, *inside, *after]:
            return None
        if self.ignores_case:
            inside = [word.lower() for word in inside]
        return self.read_value(inside) if inside else None

    def read_value(self, words):
        """Returns the value of a non-empty answer; `None`: it is none."""
        return tuple(words)
