"""The base class, where no single task shows it."""

import dataclasses

import pytest
import tensorflow as tf

from datasets.tasks import TASKS, base


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


def test_mask_comes_from_scored():
    batch = FirstHalfScored().sample((0, 0), 3, 5)
    expected = [[True, True, False, False, False]] * 3
    assert batch["mask"].numpy().tolist() == expected


def test_tasks_are_frozen_and_hashable():
    task = FirstHalfScored()
    assert {task: 1}[FirstHalfScored()] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.level = "regular"


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("mqar", (64, 16), "MQAR .* needs input_vocabulary_size=32; got 64"),
        ("mqar", (2, 1), "an output_vocabulary_size of at least 2; got 1"),
        ("mqmtar", (19, 256), "needs input_vocabulary_size=259; got 19"),
        ("frequent_words", (129, 256), "needs input_vocabulary_size=257"),
        ("frequent_words", (3, 2), "of at least 3; got 2"),
        ("common_words", (2000, 1000), "needs input_vocabulary_size=1000"),
        ("common_words", (3, 3), "of at least 4; got 3"),
        ("unique_copy", (300, 150), "needs input_vocabulary_size=150; got 300"),
        ("unique_sort", (150, 300), "needs input_vocabulary_size=300; got 150"),
        ("needle", (32, 64), "64 symbols and 4 keys needs .* at least 68"),
    ],
)
def test_vocabularies_that_do_not_fit_are_refused(name, sizes, message):
    inputs, outputs = sizes
    with pytest.raises(ValueError, match=message):
        type(TASKS[name])(
            input_vocabulary_size=inputs, output_vocabulary_size=outputs
        )


def test_fractional_length_is_refused():
    with pytest.raises(TypeError):
        FirstHalfScored().sample((0, 0), 3, 2.5)
