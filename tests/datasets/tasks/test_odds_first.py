"""Odds first: indices count from zero."""

from tests.datasets.tasks import row


def odd_indices_first(bits):
    order = sorted(range(len(bits)), key=lambda index: (index % 2 == 0, index))
    return [bits[index] for index in order]


ROW = row.Row(
    published=(2, 2, row.CONTEXT_SENSITIVE, 0.5),
    oracle=odd_indices_first,
    outcomes=row.strings(2),
    floor_rules=row.most_frequent(range(2)),
    output_length=lambda length: length,
)


def test_the_order_of_seven():
    assert odd_indices_first([*range(7)]) == [1, 3, 5, 0, 2, 4, 6]
