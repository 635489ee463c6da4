"""Cycle navigation: its row."""

from tests.datasets.tasks import row


def walk(steps):
    place = 0
    for step in steps:
        if step == 2:
            place = 0 if place == 4 else place + 1
        if step == 0:
            place = 4 if place == 0 else place - 1
    return [place]


ROW = row.Row(
    published=(3, 5, row.REGULAR, 0.2),
    oracle=walk,
    outcomes=row.strings(3),
    floor_rules=row.constants(5),
)
