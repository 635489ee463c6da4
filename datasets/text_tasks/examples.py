"""Prompts and answers of a task, by their number."""

import dataclasses
import functools

import numpy as np

from datasets.text_tasks.base import TextTask
from datasets.text_tasks.scratchpad import write_scratchpad

SPLITS = ("train", "validation", "test")

TRAIN_SHARE = 0.9
"""Largest share of the problems of a bin that training sees.

Only of tasks that know how many problems a bin has. Others may draw a problem
of training again for validation: see `find_seen_share`.
"""


@dataclasses.dataclass(frozen=True)
class Examples:
    """Examples of a split.

    Attributes:
        task: `TextTask`.
        bins: Tuple of its bins.
        split: str, of `SPLITS`. Two splits draw other problems.
        seed: int. Seed of the problems.
        fields: Tuple of str. Fields of the scratchpad; none: no scratchpad.
        counts: Tuple of int. Numbers of examples of the bins, one after the
            other; none: bins take turns without end.
        first: Tuple of int. Numbers of the first problems of the bins.
        structured: float from 0 to 1. Share of problems that
            `task.draw_structured` draws.
        kinds: Tuple of str. Kinds of problems that take turns: those of an
            example and of the `len(kinds) - 1` ones after it are different.
            Empty: all problems are drawn alike.
    """

    task: TextTask
    bins: tuple
    split: str
    seed: int = 0
    fields: tuple = ()
    counts: tuple = ()
    first: tuple = ()
    structured: float = 0.0
    kinds: tuple = ()

    def __len__(self):
        """Returns the number of examples, 0 for no end."""
        return sum(self.counts)

    @property
    def available(self):
        """Number of different problems; `None`: no end is known.

        For bins that take turns.
        """
        known = [self.task.count(place) for place in self.bins]
        return None if None in known else sum(known) - sum(self.first)

    @functools.cached_property
    def _ends(self):
        return np.cumsum(self.counts)

    def find(self, index):
        """Returns the number of an example's bin, and its number in the bin.

        Args:
            index: int, at least 0.
        """
        index //= max(len(self.kinds), 1)
        if self.counts:
            turn = int(np.searchsorted(self._ends, index, "right"))
            number = index - int(self._ends[turn]) + self.counts[turn]
        else:
            number, turn = divmod(index, len(self.bins))
        return turn, number + (self.first[turn] if self.first else 0)

    def problem(self, index):
        """Returns the problem of an example.

        Args:
            index: int, at least 0.
        """
        turn, number = self.find(index)
        place = self.bins[turn]
        key = [self.seed, SPLITS.index(self.split), number, *place]
        rng = np.random.default_rng(key)
        if self.kinds:
            return self.task.draw_kind(self.name_kind(index), rng, place)
        if self.structured and rng.random() < self.structured:
            return self.task.draw_structured(rng, place)
        return self.task.draw(rng, place, number)

    def name_kind(self, index):
        """Returns the kind of an example, one of `kinds`."""
        return self.kinds[index % len(self.kinds)]

    def length(self, index):
        """Returns the length of the problem of an example."""
        return max(self.bins[self.find(index)[0]])

    def name_bin(self, index):
        """Returns the name of an example's bin, such as `"8x3"`."""
        return "x".join(map(str, self.bins[self.find(index)[0]]))

    def write(self, problem):
        """Returns the prompt and the answer of a problem, each a str."""
        task = self.task
        steps = task.steps(problem) if self.fields else ()
        scratchpad = write_scratchpad(steps, self.fields)
        return task.write_prompt(problem), scratchpad + task.write_answer(
            problem
        )

    def longest(self):
        """Returns the prompt and the answer with the most words of each bin.

        Returns:
            List of pairs of str.
        """
        return [self.write(self.task.longest(place)) for place in self.bins]


def training_examples(
    task, lengths, *, size, seed=0, fields=(), structured=0.0
):
    """Returns the `Examples` of training.

    Bins have equally many, as far as they have so many problems.

    Args:
        task: `TextTask`.
        lengths: Increasing ints. Trained lengths.
        size: int. Number of examples; 0: without end or, of a task with a
            list of problems, all that are not kept for validation.
        seed: int. Seed of the examples.
        fields: Tuple of str. Fields of the scratchpad; none: no scratchpad.
        structured: float from 0 to 1. Share of structured problems.
    """
    bins = tuple(task.bins(lengths))
    return Examples(
        task,
        bins,
        "train",
        seed,
        tuple(fields),
        _count(task, bins, size),
        structured=structured,
    )


def validation_examples(training, length):
    """Returns the `Examples` of validation at a trained length.

    They follow those of training in every bin, so that a problem that a bin
    has once is in one of both.

    Args:
        training: `Examples` of training.
        length: int. One of the trained lengths.
    """
    task = training.task
    places = set(task.bins_at(length))
    # Training without end draws no problem of the split of validation.
    counts = training.counts or (0,) * len(training.bins)
    kept = {
        place: count
        for place, count in zip(training.bins, counts, strict=True)
        if place in places
    }
    return dataclasses.replace(
        training,
        bins=tuple(kept),
        split="validation",
        counts=(),
        first=tuple(kept.values()),
        structured=0.0,
    )


def evaluation_examples(training, lengths, trained, kinds=()):
    """Returns the `Examples` of every length, a dict.

    Args:
        training: `Examples` of training.
        lengths: Ints. The evaluated lengths.
        trained: Ints. Those of them that are trained.
        kinds: Tuple of str. Kinds of problems that take turns; empty: problems
            are drawn as by `task.draw`.
    """
    given = {"seed": training.seed, "fields": training.fields}
    found = {
        length: validation_examples(training, length)
        if length in trained
        else length_examples(training.task, length, **given)
        for length in lengths
    }
    return {
        length: dataclasses.replace(examples, kinds=tuple(kinds))
        for length, examples in found.items()
    }


def length_examples(task, length, *, seed=0, fields=()):
    """Returns the `Examples` of a length that is not trained."""
    bins = tuple(task.bins_at(length))
    return Examples(task, bins, "test", seed, tuple(fields))


def find_seen_share(training, examples, count):
    """Returns the share of problems that training has, too.

    Args:
        training: `Examples` of training.
        examples: `Examples`.
        count: int. Number of examples to look at.

    Returns:
        float; `None` if training has no end, or no problem of these bins.
    """
    places = set(examples.bins)
    if places.isdisjoint(training.bins) or not training.counts:
        return None
    seen, first = set(), 0
    for place, number in zip(training.bins, training.counts, strict=True):
        if place in places:
            every = range(first, first + number)
            seen |= {training.problem(index) for index in every}
        first += number
    found = [examples.problem(index) in seen for index in range(count)]
    return sum(found) / count


def _count(task, bins, size):
    """Returns the numbers of training examples of bins; `()`: no end."""
    each, more = divmod(size, len(bins))
    counts = [each + (turn < more) for turn in range(len(bins))]
    known = [task.count(place) for place in bins]
    if None in known:
        return tuple(counts) if size else ()
    # At least one is left for validation.
    most = [min(round(TRAIN_SHARE * n), max(n - 1, 0)) for n in known]
    return tuple(map(min, counts, most) if size else most)
