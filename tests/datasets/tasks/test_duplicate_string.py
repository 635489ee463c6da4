"""Duplicate string: its row."""

from tests.datasets.tasks import row

ROW = row.Row(
    published=(2, 2, row.CONTEXT_SENSITIVE, 0.5),
    oracle=lambda bits: 2 * bits,
    outcomes=row.strings(2),
    floor_rules=row.most_frequent(range(2)),
    output_length=lambda length: 2 * length,
)
