"""MQAR: pairs, fillers beyond the number of keys, and a small vocabulary."""

import itertools

import numpy as np

from datasets.tasks.mqar import MQAR
from tests.datasets.tasks import row


def make_row(values):
    def count_pairs(length):
        return max(1, min(length // 4, values - 1))

    def look_up(tokens):
        store, queries, place = {}, [], 0
        while place < len(tokens):
            token = tokens[place]
            following = tokens[place + 1 : place + 2]
            if 0 < token < values and following and following[0] >= values:
                assert token not in store, "a key has two values"
                store[token] = following[0] - values
                place += 1
            elif token:
                queries.append(token)
            place += 1
        return [store[query] for query in queries]

    def outcomes(length):
        count = count_pairs(length)
        fillers = max(0, length - 4 * (values - 1))
        found = []
        for keys, answers, order, places in itertools.product(
            itertools.permutations(range(1, values), count),
            itertools.permutations(range(values, 2 * values), count),
            itertools.permutations(range(count)),
            itertools.combinations(range(count + fillers), count),
        ):
            items = [(0,)] * (count + fillers)
            for place, key, answer in zip(places, keys, answers, strict=True):
                items[place] = (key, answer)
            queries = [keys[number] for number in order]
            found.append((*itertools.chain(*items), *queries))
        return row.equally_likely(found)

    def lowest_value(inputs):
        present = np.where(inputs >= values, inputs, 2 * values)
        return [present.min(axis=1, keepdims=True) - values]

    return row.Row(
        published=(2 * values, values, row.REGULAR, 1 / 32),
        oracle=look_up,
        outcomes=outcomes,
        floor_rules=lowest_value,
        input_length=lambda length: (
            3 * count_pairs(length) + max(0, length - 4 * (values - 1))
        ),
        output_length=lambda tokens: min(tokens // 3, values - 1),
    )


ROW = row.with_small(make_row(32), make_row(3), MQAR, range(1, 12))
