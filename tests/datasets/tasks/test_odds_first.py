"""Odds first: indices count from zero."""

from tests.datasets.tasks import row

ROW = row.Row(
    published=(2, 2, row.CONTEXT_SENSITIVE, 0.5),
    oracle=lambda bits: bits[1::2] + bits[::2],
    outcomes=row.strings(2),
    floor_rules=row.most_frequent(range(2)),
    output_length=lambda length: length,
)
