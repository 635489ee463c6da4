"""Base of the tasks whose floors are measured on examples."""

import dataclasses
import functools

import numpy as np

from datasets.tasks.base import Task

EXAMPLES = 4096
"""Number of examples to choose a rule with, and to measure its accuracy."""

FEWEST_EXAMPLES = 128
TOKENS = 2**22
"""Problems of more than `TOKENS / EXAMPLES` tokens get fewer examples."""


@dataclasses.dataclass(frozen=True)
class MeasuredFloors(Task):
    """A task without a short formula for the accuracy of simple rules.

    The best rule is chosen on one set of examples, and its accuracy is measured
    on another.

    A subclass implements `draw`, `output_length` and `simple_rules`.
    """

    def simple_rules(self, inputs):
        """Computes the predictions of R rules that ignore positions.

        Args:
            inputs: int array `(N, n)` of input ids.

        Returns:
            int or bool array `(R, N)`: the symbol that each rule predicts for
            all outputs of an example.
        """
        raise NotImplementedError

    def floor_accuracy(self, length):
        """Accuracy of the best of the `simple_rules`, measured on examples."""
        return _measure_floors(self, length)[0]

    def position_only_accuracy(self, length):
        """Accuracy of the most frequent symbol of each position, measured."""
        return _measure_floors(self, length)[1]


def find_most_frequent(inputs, symbols):
    """Finds the most frequent of some symbols in every row.

    Args:
        inputs: int array `(N, n)`.
        symbols: range or sequence of int. If several are equally frequent,
            the first of them counts.

    Returns:
        int array `(N,)`.
    """
    counts = [np.sum(inputs == symbol, axis=1) for symbol in symbols]
    return np.asarray(symbols)[np.argmax(counts, axis=0)]


@functools.cache
def _measure_floors(task, length):
    """Returns `floor_accuracy` and `position_only_accuracy` of a task."""
    examples = min(max(TOKENS // length, FEWEST_EXAMPLES), EXAMPLES)
    chosen_on, measured_on = (
        {
            name: array.numpy()
            for name, array in task.sample((half, 0), examples, length).items()
        }
        for half in range(2)
    )
    scored = measured_on["mask"].sum()

    def count_hits(half):
        """Counts the correct outputs of each rule, `(R,)`."""
        rules = np.asarray(task.simple_rules(half["inputs"]), int)
        counts = _count_symbols(task, half, axis=0)
        return np.sum(counts[np.arange(examples), rules], axis=1)

    best = np.argmax(count_hits(chosen_on))
    floor = count_hits(measured_on)[best] / scored
    commonest = _count_symbols(task, chosen_on, axis=1).argmax(axis=1)
    by_place = _count_symbols(task, measured_on, axis=1)
    right = by_place[np.arange(len(commonest)), commonest].sum()
    return float(floor), float(right / scored)


def _count_symbols(task, half, axis):
    """Counts the scored targets that are each symbol, in rows or columns.

    Returns:
        int array `(N, symbols)` for axis 0, `(m, symbols)` for axis 1.
    """
    symbols = task.output_vocabulary_size
    size = half["targets"].shape[axis]
    index = np.expand_dims(np.arange(size), 1 - axis)
    cells = (index * symbols + half["targets"])[half["mask"]]
    counts = np.bincount(cells, minlength=size * symbols)
    return counts.reshape(size, symbols)
