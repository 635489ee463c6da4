"""Binary addition: its row, and what counting tells of long sums."""

from datasets.tasks.binary_addition import BinaryAddition
from tests.datasets.tasks import row
from tests.datasets.tasks.bits import (
    laws_of_two_numbers,
    operands,
    terminated,
    threshold_on_ones_or_termination,
    two_numbers,
)

ROW = row.TerminatedRow(
    published=(3, 3, row.CONTEXT_SENSITIVE, 0.5),
    oracle=lambda tokens: terminated(sum(operands(tokens)), len(tokens) + 1),
    outcomes=two_numbers,
    floor_rules=threshold_on_ones_or_termination,
    output_length=lambda length: length + 1,
    enumerated_lengths=range(1, 11),
    # Always 0 2, and always 0 1 2. Two ones sum to 0 1 2 or 1 1 2, and 1 is
    # three of these; three ones to 0 0 1 2, and 0 is two of those.
    floors={1: (0.5, 1), 3: (1 / 3, 1), 4: (0.5, None)},
    laws=laws_of_two_numbers,
)


def test_counting_tells_more_than_positions_of_long_sums():
    # The more ones in the numbers, the more in the sum.
    task = BinaryAddition()
    floors = [task.floor_accuracy(length) for length in (40, 100, 500)]
    assert floors == sorted(floors, reverse=True)
    assert floors[-1] > 0.505 > task.position_only_accuracy(40)
