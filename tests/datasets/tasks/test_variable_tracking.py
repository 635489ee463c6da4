"""Variable tracking: all ways to mix two chains, and a small vocabulary."""

import collections
import itertools

import numpy as np
import pytest

from datasets.tasks.variable_tracking import VariableTracking
from tests.datasets.tasks import row


def make_row(values, variables, **fields):
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
        **fields,
    )


def count_kinds(inputs, targets):
    listed = inputs[:, :-1]
    is_value = (listed > 0) & (listed <= 16)
    return np.stack([(listed > 16).sum(axis=1), is_value.sum(axis=1)], axis=1)


ROW = make_row(
    *(16, 16),
    enumerated_lengths=range(0),
    laws=(
        # Two chains of five variables, of which four occur twice.
        *(
            row.Law(length, 2000, count_kinds, row.always(18, 2))
            for length in (21, 22, 500)
        ),
        row.Law(
            30,
            20_000,
            lambda inputs, targets: inputs[:, -1],
            row.uniform(range(1, 17)),
        ),
        *(
            row.Law(
                30,
                20_000,
                lambda inputs, targets, place=place: targets[:, place],
                row.uniform(range(16)),
            )
            for place in range(5)
        ),
    ),
    small=make_row(
        *(2, 4),
        task=VariableTracking(
            input_vocabulary_size=7, output_vocabulary_size=4
        ),
        enumerated_lengths=range(4, 11),
    ),
)


def test_assignments_are_anywhere():
    inputs = VariableTracking().sample((1, 2), 5000, 500)["inputs"].numpy()
    places = np.nonzero(inputs[:, :-1] == 0)[1]
    # 479 noise tokens a row are not independent; their shares are close.
    shares = np.bincount(places // 100) / len(places)
    np.testing.assert_allclose(shares, 0.2, atol=0.002)


@pytest.mark.parametrize(("inputs", "outputs"), [(18, 16), (4, 1)])
def test_each_chain_needs_a_variable_and_a_value(inputs, outputs):
    VariableTracking(input_vocabulary_size=19, output_vocabulary_size=16)
    with pytest.raises(ValueError, match="set the second to at least 2, and"):
        VariableTracking(
            input_vocabulary_size=inputs, output_vocabulary_size=outputs
        )


def test_the_order_of_assignments_tells_more_than_counts():
    batch = VariableTracking().sample((1, 2), 5000, 60)
    found = []
    for tokens in batch["inputs"].numpy()[:, :-1].tolist():
        listed = [token for token in tokens if token]
        assigned = listed[::2]
        found.append([assigned[rank - 1] - 17 for rank in (1, 3, 5, 8, 10)])
    accuracy = (np.array(found) == batch["targets"].numpy()).mean()
    # The first and the last one have 1 / 2, the middle one 60 / 252.
    expected = (1 / 2 + 70 / 252 + 60 / 252 + 70 / 252 + 1 / 2) / 5
    assert round(expected, 2) == 0.36
    assert abs(accuracy - expected) < 0.01
    assert VariableTracking().floor_accuracy(60) == 0.2
