"""Parity check: its row."""

from tests.datasets.tasks import row

ROW = row.Row(
    published=(2, 2, row.REGULAR, 0.5),
    oracle=lambda bits: [bits.count(1) % 2],
    outcomes=row.strings(2),
    floor_rules=row.constants(2),
)
