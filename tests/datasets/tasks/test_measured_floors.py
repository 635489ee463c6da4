"""Measured floors, where no single task shows them."""

import dataclasses

import pytest

from datasets.tasks import measured_floors
from datasets.tasks.base import draw_symbols

sizes = []


@dataclasses.dataclass(frozen=True)
class ManyFairBits(measured_floors.MeasuredFloors):
    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2
    level: str = "regular"
    random_accuracy: float = 0.5

    def draw(self, seed, batch_size, length):
        sizes.append(batch_size)
        bits = draw_symbols(seed, batch_size, 500, 2)
        return bits, bits

    def simple_rules(self, inputs):
        return [inputs[:, 0]]


def test_other_and_fewer_examples_than_those_that_chose_a_rule(monkeypatch):
    # The commoner bit of 4096 is 0.6% above a half in these, not in others.
    claimed = ManyFairBits().position_only_accuracy(1)
    assert claimed == pytest.approx(0.5, abs=2e-3)
    monkeypatch.setattr(measured_floors, "TOKENS", 8192)
    for length in (4, 200):
        ManyFairBits().floor_accuracy(length)
    assert sizes == [4096, 4096, 2048, 2048, 128, 128]
