"""The base class, where no single task shows it."""

import dataclasses
import doctest

import pytest
import tensorflow as tf

from datasets.tasks import base


@dataclasses.dataclass(frozen=True)
class FirstHalfScored(base.RearrangedBits):
    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2
    level: str = "regular"
    random_accuracy: float = 0.5

    def output_length(self, length):
        return length

    def rearrange(self, bits):
        return bits

    def scored(self, targets):
        outputs = tf.shape(targets)[1]
        return tf.broadcast_to(
            tf.range(outputs) < outputs // 2, tf.shape(targets)
        )


def test_docstring_examples():
    results = doctest.testmod(base)
    assert results.attempted and not results.failed


def test_mask_comes_from_scored():
    batch = FirstHalfScored().sample((0, 0), 3, 5)
    expected = [[True, True, False, False, False]] * 3
    assert batch["mask"].numpy().tolist() == expected


def test_tasks_are_frozen_and_hashable():
    task = FirstHalfScored()
    assert {task: 1}[FirstHalfScored()] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.level = "regular"


def test_fractional_length_is_refused():
    with pytest.raises(TypeError):
        FirstHalfScored().sample((0, 0), 3, 2.5)
