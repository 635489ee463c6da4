"""Words in groups: the groups themselves, and the running products."""

import itertools

import numpy as np

from tests.datasets.tasks import row


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


def make_row(elements, **fields):
    def running_products(word):
        state = elements[0]
        products = []
        for number in word:
            state = tuple(state[thing] for thing in elements[number])
            products.append(elements.index(state))
        return products

    size = len(elements)
    return row.Row(
        published=(size, size, row.REGULAR, 1 / size),
        oracle=running_products,
        outcomes=row.strings(size),
        floor_rules=row.constants(size),
        output_length=lambda length: length,
        enumerated_lengths=range(1, 4 if size == 6 else 2),
        **fields,
    )


ROWS = {
    "words_s3": make_row(
        list_elements(3),
        laws=(
            # A product is independent of the elements before the last one.
            row.Law(
                33,
                40_000,
                lambda inputs, targets: np.stack(
                    [inputs[:, 20], targets[:, 30]], axis=1
                ),
                row.uniform(list(itertools.product(range(6), repeat=2))),
            ),
        ),
    ),
    "words_a5": make_row(list_elements(5, even=True)),
    "words_s5": make_row(
        list_elements(5),
        laws=(
            row.Law(
                70,
                40_000,
                lambda inputs, targets: targets[:, -1],
                row.uniform(range(120)),
            ),
        ),
    ),
}
