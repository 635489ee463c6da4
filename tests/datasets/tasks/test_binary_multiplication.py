"""Binary multiplication: its row."""

import math

from tests.datasets.tasks import row
from tests.datasets.tasks.bits import (
    operands,
    terminated,
    threshold_on_ones_or_termination,
    two_numbers,
)

ROW = row.TerminatedRow(
    published=(3, 3, row.CONTEXT_SENSITIVE, 0.5),
    oracle=lambda tokens: terminated(math.prod(operands(tokens)), len(tokens)),
    outcomes=two_numbers,
    floor_rules=threshold_on_ones_or_termination,
    output_length=lambda length: length,
    enumerated_lengths=range(1, 11),
)
