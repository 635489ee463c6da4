"""Variable tracking: all ways to mix two chains, and a small vocabulary."""

import collections
import itertools

import numpy as np

from datasets.tasks.variable_tracking import VariableTracking
from tests.datasets.tasks import row


def make_row(values, variables):
    first = 1 + values

    def resolve_every_variable(tokens):
        *listed, asked = tokens
        assigned = {}
        while listed:
            token = listed.pop(0)
            if token:
                assert token >= first
                assert token not in assigned
                source = listed.pop(0)
                assigned[token] = assigned.get(source, source)
        assert len(set(assigned.values())) == 2
        assert all(0 < value < first for value in assigned.values())
        return [
            variable - first
            for variable, value in assigned.items()
            if value == asked
        ]

    def mixed_chains(length):
        length = max(length, 5)
        size = min((length - 1) // 4, 5, variables // 2)
        noise = length - 1 - 4 * size
        names = range(first, first + variables)
        found = collections.Counter()
        for kinds, numbers, chosen in itertools.product(
            set(itertools.permutations("a" * size + "b" * size + "n" * noise)),
            itertools.permutations(range(1, first), 2),
            itertools.permutations(names, 2 * size),
        ):
            chains = {
                "a": [numbers[0], *chosen[:size]],
                "b": [numbers[1], *chosen[size:]],
            }
            listed = []
            for kind in kinds:
                if kind == "n":
                    listed.append(0)
                else:
                    listed += [chains[kind][1], chains[kind].pop(0)]
            found[(*listed, numbers[0])] += 1
        return {key: count / found.total() for key, count in found.items()}

    def variables_by_count(inputs):
        counts = np.stack(
            [(inputs == first + name).sum(axis=1) for name in range(variables)],
            axis=1,
        )
        once, twice = (np.argmax(counts == times, axis=1) for times in (1, 2))
        size = (counts > 0).sum(axis=1)[0] // 2
        answer = np.stack([twice] * (size - 1) + [once], axis=1)
        return [answer, twice[:, np.newaxis], once[:, np.newaxis]]

    return row.Row(
        published=(first + variables, variables, row.REGULAR, 1 / 16),
        oracle=resolve_every_variable,
        outcomes=mixed_chains,
        floor_rules=variables_by_count,
        input_length=lambda length: max(length, 5),
        output_length=lambda tokens: min((tokens - 1) // 4, 5, variables // 2),
    )


ROW = row.with_small(
    make_row(16, 16), make_row(2, 4), VariableTracking, range(4, 11)
)
