"""Base class of tasks with a list of problems."""

import functools
from typing import ClassVar

import numpy as np

from datasets.text_tasks.base import Template, TextTask, split_words


class FiniteTask(TextTask):
    """A task with a list of problems, each a command and its answer.

    Attributes:
        longest_trained: int. Longest length of the published training data.
    """

    longest_trained: ClassVar[int]

    templates = {
        "code": Template("Solve: {command}", "[SEP] ", "{answer}"),
        "paper": Template("{command}", "[SEP] ", "{answer}"),
    }

    @property
    def trained_lengths(self):
        """Lengths of published training data, increasing."""
        return [n for n in self.problems if n <= self.longest_trained]

    @property
    def tested_lengths(self):
        """Lengths of published test data, increasing."""
        return [n for n in self.problems if n > self.longest_trained]

    def list_problems(self):
        """Returns a dict from lengths to lists of pairs of str."""
        raise NotImplementedError

    @functools.cached_property
    def problems(self):
        """Dict from lengths to lists of pairs of str, in random order."""
        rng = np.random.default_rng(0)
        return {
            length: [pairs[index] for index in rng.permutation(len(pairs))]
            for length, pairs in sorted(self.list_problems().items())
        }

    def count(self, place):
        """Returns the number of problems of a length."""
        return len(self.problems.get(*place, []))

    def draw(self, rng, place, number):
        """Returns a problem; the first one follows the last one."""
        problems = self.problems[place[0]]
        return problems[number % len(problems)]

    def longest(self, place):
        """Returns the command and the answer with the most words.

        They need not be of the same problem.
        """
        return tuple(
            max(texts, key=lambda text: len(split_words(text)))
            for texts in zip(*self.problems[place[0]], strict=True)
        )

    def fill(self, problem):
        """Returns the command and the answer."""
        command, answer = problem
        return {"command": command, "answer": answer}
