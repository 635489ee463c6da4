"""Words in groups: the groups themselves, and the running products."""

import collections
import itertools

import numpy as np
import pytest

from datasets.tasks import TASKS
from datasets.tasks.group_words import WordsA5, WordsS3, WordsS5
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.row import REGULAR, Row, constants, strings


def is_even(permutation):
    """Whether an even number of swaps sorts it."""
    items, swaps = list(permutation), 0
    for place in range(len(items)):
        while items[place] != place:
            other = items[place]
            items[place], items[other] = items[other], items[place]
            swaps += 1
    return swaps % 2 == 0


def list_elements(things, even=False):
    elements = itertools.permutations(range(things))
    return [one for one in elements if not even or is_even(one)]


def make_row(elements):
    def running_products(word):
        state = elements[0]
        products = []
        for number in word:
            state = tuple(state[thing] for thing in elements[number])
            products.append(elements.index(state))
        return products

    size = len(elements)
    return Row(
        published=(size, size, REGULAR, 1 / size),
        oracle=running_products,
        outcomes=strings(size),
        floor_rules=constants(size),
        output_length=lambda length: length,
        enumerated_lengths=range(1, 4 if size == 6 else 2),
    )


ROWS = {
    "words_s3": make_row(list_elements(3)),
    "words_a5": make_row(list_elements(5, even=True)),
    "words_s5": make_row(list_elements(5)),
}


@pytest.mark.parametrize(("name", "size"), [("s3", 6), ("a5", 60), ("s5", 120)])
def test_elements_form_a_group(name, size):
    elements = TASKS[f"words_{name}"].permutations()
    assert len(set(elements)) == size
    products = {
        tuple(first[thing] for thing in second)
        for first in elements
        for second in elements
    }
    assert products == set(elements)


def test_a5_is_not_solvable_and_s3_is():
    for task, solvable in ((WordsS3(), True), (WordsA5(), False)):
        group = set(task.permutations())
        for _ in range(5):
            group = derive(group)
        assert (len(group) == 1) == solvable


def derive(group):
    """The commutators of a group and their products."""

    def multiply(first, second):
        return tuple(first[thing] for thing in second)

    def invert(element):
        return tuple(np.argsort(element).tolist())

    found = {
        multiply(multiply(invert(a), invert(b)), multiply(a, b))
        for a in group
        for b in group
    }
    while True:
        more = {multiply(a, b) for a in found for b in found}
        if more <= found:
            return found
        found |= more


def test_products_are_uniform_and_independent_of_the_word_so_far():
    batch = WordsS5().sample((1, 2), 40_000, 70)
    last = collections.Counter(batch["targets"].numpy()[:, -1].tolist())
    assert_counts_follow(last, dict.fromkeys(range(120), 1 / 120))
    batch = WordsS3().sample((1, 2), 40_000, 33)
    pairs = np.stack([batch["inputs"][:, 20], batch["targets"][:, 30]], axis=1)
    counts = collections.Counter(map(tuple, pairs.tolist()))
    everything = itertools.product(range(6), repeat=2)
    assert_counts_follow(counts, dict.fromkeys(everything, 1 / 36))
