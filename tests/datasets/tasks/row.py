"""The row of a task: what its tests know of it, in plain Python.

The test file of every task has its `ROW`, or `ROWS` by name. The oracle answers
a problem in plain Python, the outcomes are the published distribution written
out, laws say what holds where outcomes are too many, and the floor rules are
the simple predictors that `floor_accuracy` claims to be the best of.
"""

import collections
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

REGULAR = "regular"
CONTEXT_FREE = "deterministic_context_free"
CONTEXT_SENSITIVE = "context_sensitive"


class Law(NamedTuple):
    """How often something occurs in the problems of some length.

    `find` maps inputs and targets, arrays, to what is counted: numbers, or rows
    of numbers. `shares` has the probability of each; others must not occur.
    """

    length: int
    examples: int
    find: Callable
    shares: dict
    task: Any = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A task as the papers describe it.

    Attributes:
        published: Input vocabulary, output vocabulary, level and random
            accuracy.
        oracle: Maps a list of input ids to the list of target ids.
        outcomes: Maps a length to the probability of every input of it; by
            default, all strings are equally likely.
        floor_rules: Maps inputs `(N, n)` to a list of predictions, each
            `(N, m)` or a shape that broadcasts to it; constants by default.
        output_length: Maps the number of input tokens to that of outputs.
        enumerated_lengths: Lengths at which to ask for all outcomes.
        floor_examples: Examples on which the task measures its floors, if it
            does not compute them.
        small: The row of a smaller task, whose outcomes are few enough.
    """

    published: tuple
    oracle: Callable
    outcomes: Callable = None
    floor_rules: Callable = None
    input_length: Callable = lambda length: length
    output_length: Callable = lambda length: 1
    scored: Callable = lambda targets: [True] * len(targets)
    enumerated_lengths: range = range(1, 6)
    floor_examples: float = math.inf
    laws: tuple = ()
    task: Any = None
    small: Any = None

    def __post_init__(self):
        inputs, outputs, *_ = self.published
        set_field = functools.partial(object.__setattr__, self)
        set_field("outcomes", self.outcomes or strings(inputs))
        set_field("floor_rules", self.floor_rules or constants(outputs))


def up_to_termination(targets):
    end = targets.index(2)
    return [place <= end for place in range(len(targets))]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TerminatedRow(Row):
    """A task whose answers end with 2, and which measures its floors."""

    scored: Callable = up_to_termination
    floor_examples: float = 4096


def with_small(row, small, task_class, lengths):
    """A row, with that of a smaller task of the class at some lengths."""
    inputs, outputs, *_ = small.published
    task = task_class(
        input_vocabulary_size=inputs, output_vocabulary_size=outputs
    )
    small = dataclasses.replace(small, task=task, enumerated_lengths=lengths)
    return dataclasses.replace(row, small=small)


def uniform(values):
    return dict.fromkeys(values, 1 / len(values))


def uniform_law(length, find, count):
    """That numbers below `count` are found equally often."""
    return Law(length, 20_000, find, uniform(range(count)))


def equally_likely(inputs):
    counts = collections.Counter(inputs)
    return {key: count / counts.total() for key, count in counts.items()}


def valid_strings(ids, is_valid, shortest=1):
    """Equally likely strings, all those that are valid."""

    def outcomes(length):
        tried = itertools.product(range(ids), repeat=max(length, shortest))
        return equally_likely(filter(is_valid, tried))

    return outcomes


def strings(alphabet_size):
    def outcomes(length):
        return equally_likely(
            itertools.product(range(alphabet_size), repeat=length)
        )

    return outcomes


def constants(alphabet_size):
    def rules(inputs):
        return [np.full((1, 1), symbol) for symbol in range(alphabet_size)]

    return rules


def most_frequent(symbols):
    """The rule that predicts which of a range of symbols is most frequent."""

    def rules(inputs):
        counts = [(inputs == symbol).sum(axis=1) for symbol in symbols]
        return [np.argmax(counts, axis=0)[:, np.newaxis]]

    return rules


def threshold_on_ones(inputs):
    ones = (inputs == 1).sum(axis=1, keepdims=True)
    rules = [ones >= limit for limit in range(inputs.shape[1] + 1)]
    return rules + [~rule for rule in rules]
