"""Measured floors, where no single task shows them."""

import numpy as np

from datasets.tasks import measured_floors
from datasets.tasks.measured_floors import find_most_frequent
from datasets.tasks.two_back import TwoBack


def test_first_of_the_most_frequent_symbols():
    inputs = np.array([[3, 1, 3, 5], [1, 5, 5, 1], [5, 5, 0, 0], [0, 0, 0, 0]])
    assert find_most_frequent(inputs, [5, 1, 3]).tolist() == [3, 5, 5, 5]


def test_long_problems_get_fewer_examples(monkeypatch):
    sizes = []
    sample = TwoBack.sample

    def watched(self, seed, batch_size, length):
        sizes.append(batch_size)
        return sample(self, seed, batch_size, length)

    monkeypatch.setattr(TwoBack, "sample", watched)
    monkeypatch.setattr(measured_floors, "TOKENS", 8192)
    for length in (2, 4, 200):
        # A vocabulary that no other test has: results are kept.
        task = TwoBack(input_vocabulary_size=7, output_vocabulary_size=7)
        assert 0 < task.floor_accuracy(length) <= 1
    assert sizes == [4096, 4096, 2048, 2048, 128, 128]
