"""What every task of JAX promises, by the oracles of TensorFlow's tasks."""

import functools
import sys

import jax
import numpy as np
import pytest

from datasets.jax_tasks import JAX_TASKS
from datasets.tasks import TASKS
from tests.datasets.tasks.test_conformance import ROWS, assert_follow
from tests.shell import run_python

PADDED = 24

every_task = pytest.mark.parametrize("name", JAX_TASKS)


@functools.cache
def program(name, batch_size, padded_length):
    def draw(seed, length):
        key = jax.random.key(seed)
        task = JAX_TASKS[name]
        return task.draw_batch(key, batch_size, length, padded_length)

    return jax.jit(draw)


def draw(name, seed, batch_size, length, padded_length=PADDED):
    drawn = program(name, batch_size, padded_length)(seed, length)
    return {key: np.asarray(array) for key, array in drawn.items()}


@pytest.mark.product
@every_task
def test_one_program_has_padded_answers_of_all_lengths(name):
    task, oracle = JAX_TASKS[name], ROWS[name].oracle
    for length in (*range(1, 13), 40, 99, 500):
        padded = 1000 if length > 12 else PADDED
        batch = draw(name, length, 16, length, padded)
        tokens, targets = batch["token_ids"], batch["targets"]
        end = length + ROWS[name].output_length(length)
        assert batch["lengths"] == end == task.total_length(length)
        places = np.arange(padded)
        answer = np.tile((places >= length) & (places < end), (16, 1))
        for key in ("answer", "scored"):
            np.testing.assert_array_equal(batch[key], answer)
        assert targets[answer].reshape(16, -1).tolist() == [
            oracle(inputs) for inputs in tokens[:, :length].tolist()
        ]
        assert (tokens[answer] == task.input_vocabulary_size).all()
        assert (tokens[:, :length] < task.input_vocabulary_size).all()
        assert not tokens[:, end:].any() and not targets[~answer].any()
        for key in ("token_ids", "targets", "lengths"):
            assert batch[key].dtype == np.int32
    assert program(name, 16, PADDED)._cache_size() == 1


@every_task
def test_the_key_decides_the_batch_and_the_padded_length_does_not(name):
    for length in (1, 6, 11):
        short, long = (draw(name, 5, 16, length, n) for n in (PADDED, 37))
        for key in ("token_ids", "targets", "answer"):
            np.testing.assert_array_equal(short[key], long[key][:, :PADDED])
    assert (short["token_ids"] != draw(name, 4, 16, 11)["token_ids"]).any()


@pytest.mark.parametrize("length", [1, 2, 3, 5])
@every_task
def test_problems_follow_the_published_distribution(name, length):
    row, batch = ROWS[name], draw(name, 5, 20_000, length)
    end = JAX_TASKS[name].total_length(length)
    problems = np.concatenate(
        [batch["token_ids"][:, :length], batch["targets"][:, length:end]],
        axis=1,
    )
    expected = {
        (*tokens, *row.oracle(list(tokens))): probability
        for tokens, probability in row.outcomes(length).items()
    }
    assert_follow(problems, expected)


@every_task
def test_the_rest_is_that_of_the_tasks_of_tensorflow(name):
    ours, theirs = JAX_TASKS[name], TASKS[name]
    for attribute in ("input_vocabulary_size", "output_vocabulary_size"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    for length in (1, 2, 7, 40, 500):
        for method in (
            *("output_length", "total_length"),
            *("floor_accuracy", "position_only_accuracy"),
        ):
            found, expected = (
                getattr(task, method)(length) for task in (ours, theirs)
            )
            assert found == expected
    # The example and the line above it.
    ours, theirs = (sys.modules[type(t).__module__] for t in (ours, theirs))
    assert ours.__doc__ == theirs.__doc__


PROGRAM = """
import sys
sys.modules["tensorflow"] = sys.modules["keras"] = None

import jax
from datasets.jax_tasks import JAX_TASKS

for task in JAX_TASKS.values():
    task.draw_batch(jax.random.key(0), 2, 3, padded_length=8)
"""


@pytest.mark.process
def test_neither_tensorflow_nor_keras_is_needed():
    run_python("-c", PROGRAM, JAX_PLATFORMS="cpu")
