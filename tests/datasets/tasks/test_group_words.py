"""Words in groups: the groups themselves, and the running products."""

import itertools

import numpy as np

from tests.datasets.tasks import row


def list_elements(things, even=False):
    elements = itertools.permutations(range(things))
    return [
        one
        for one in elements
        if not even or np.linalg.det(np.eye(things)[list(one)]) > 0
    ]


def make_row(elements):
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
        output_length=lambda length: length,
        enumerated_lengths=range(1, 4 if size == 6 else 2),
    )


ROWS = {
    "words_s3": make_row(list_elements(3)),
    "words_a5": make_row(list_elements(5, even=True)),
    "words_s5": make_row(list_elements(5)),
}
