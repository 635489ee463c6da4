"""Terminated answers: their form, their mask, and the measured floors."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks.base import draw_symbols
from datasets.tasks.terminated_answer import TerminatedAnswer


@dataclasses.dataclass(frozen=True)
class OneOrTwoBits(TerminatedAnswer):
    """0 2 0 for a 0, three times of four, and 1 1 2 for a 1."""

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 3
    level: str = "regular"
    random_accuracy: float = 0.5

    def output_length(self, length):
        return 3

    def draw(self, seed, batch_size, length):
        bit = draw_symbols(seed, batch_size, 1, 4) // 3
        return bit, self.terminate(tf.repeat(bit, 3, axis=1), 1 + bit)

    def simple_rules(self, inputs):
        return np.stack([np.full(len(inputs), 2), inputs[:, 0]])


@dataclasses.dataclass(frozen=True)
class ManyFairBits(OneOrTwoBits):
    def draw(self, seed, batch_size, length):
        bits = draw_symbols(seed, batch_size, 500, 2)
        return bits, bits


def test_termination_and_mask():
    bits = tf.constant([[1, 0, 1, 1]] * 4)
    targets = OneOrTwoBits().terminate(bits, tf.constant([[0], [1], [3], [4]]))
    assert targets.numpy().tolist() == [
        [2, 0, 0, 0],
        [1, 2, 0, 0],
        [1, 0, 1, 2],
        [1, 0, 1, 1],
    ]
    mask = OneOrTwoBits().scored(targets).numpy()
    assert mask.sum(axis=1).tolist() == [1, 2, 4, 4]
    assert (np.diff(mask.astype(int), axis=1) <= 0).all()


def test_floors_are_shares_of_all_scored_outputs():
    scored = 3 / 4 * 2 + 1 / 4 * 3
    task = OneOrTwoBits()
    # The bit itself is right once of two times, and twice of three.
    by_token = (3 / 4 * 1 + 1 / 4 * 2) / scored
    # A mean of the shares of examples would be 0.014 less.
    assert task.floor_accuracy(1) == pytest.approx(by_token, abs=6e-3)
    # 0, 2 and 2: the last place is scored one time of four.
    by_place = (3 / 4 + 3 / 4 + 1 / 4) / scored
    assert task.position_only_accuracy(1) == pytest.approx(by_place, abs=0.02)


def test_floors_are_not_measured_on_the_examples_that_chose_them():
    # The commoner bit of 4096 is 0.6% above a half in these, not in others.
    claimed = ManyFairBits().position_only_accuracy(1)
    assert claimed == pytest.approx(0.5, abs=2e-3)
