"""Parity check: the answer and its floors at long lengths."""

from tests.datasets.tasks import row

ROW = row.Row(
    published=(2, 2, row.REGULAR, 0.5),
    oracle=lambda bits: [bits.count(1) % 2],
    outcomes=row.strings(2),
    floor_rules=row.constants(2),
    floors={length: (0.5, 0.5) for length in (1, 2, 500)},
    laws=(
        row.Law(500, 20_000, row.every_target, row.uniform(range(2))),
        row.Law(500, 200, row.every_input, row.uniform(range(2))),
    ),
)
