"""What every task of JAX promises, by the oracles of TensorFlow's tasks."""

import collections
import functools
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from datasets.jax_tasks import JAX_TASKS
from datasets.tasks import TASKS
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.test_conformance import ROWS
from tests.test_readme import ROOT

PADDED = 24
LENGTHS = tuple(range(1, 13))

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


def problems(name, batch, length):
    """Inputs and targets of a batch, without its padding."""
    end = JAX_TASKS[name].total_length(length)
    tokens, targets = batch["token_ids"], batch["targets"]
    return tokens[:, :length].tolist(), targets[:, length:end].tolist()


@every_task
@pytest.mark.parametrize(
    ("lengths", "padded_length"), [(LENGTHS, PADDED), ((40, 99, 500), 1000)]
)
def test_one_program_answers_all_lengths(name, lengths, padded_length):
    for length in lengths:
        batch = draw(name, length, 16, length, padded_length)
        inputs, targets = problems(name, batch, length)
        assert targets == [ROWS[name].oracle(tokens) for tokens in inputs]
    assert program(name, 16, padded_length)._cache_size() == 1


@every_task
@pytest.mark.parametrize("length", [1, 2, 7, 12])
def test_batches_are_arranged_as_those_of_tensorflow(name, length):
    task = JAX_TASKS[name]
    batch = draw(name, 5, 8, length)
    end = length + ROWS[name].output_length(length)
    assert batch["lengths"] == end == task.total_length(length)
    empty = batch["token_ids"][:, length:end]
    assert (empty == task.input_vocabulary_size).all()
    assert (batch["token_ids"][:, :length] < task.input_vocabulary_size).all()
    assert (batch["token_ids"][:, end:] == 0).all()
    places = np.arange(PADDED)
    answer = np.tile((places >= length) & (places < end), (8, 1))
    for key in ("answer", "scored"):
        np.testing.assert_array_equal(batch[key], answer)
    assert (batch["targets"][~answer] == 0).all()
    for key in ("token_ids", "targets", "lengths"):
        assert batch[key].dtype == np.int32


@every_task
def test_problems_do_not_depend_on_the_padded_length(name):
    for length in (1, 6, 11):
        short, long = (draw(name, 5, 8, length, size) for size in (24, 37))
        for key in ("token_ids", "targets", "answer"):
            np.testing.assert_array_equal(short[key], long[key][:, :24])


@every_task
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_problems_follow_the_published_distribution(name, length):
    row = ROWS[name]
    inputs, targets = problems(name, draw(name, 5, 20_000, length), length)
    expected = {
        (*tokens, *row.oracle(list(tokens))): probability
        for tokens, probability in row.outcomes(length).items()
    }
    counts = collections.Counter(
        (*tokens, *answer)
        for tokens, answer in zip(inputs, targets, strict=True)
    )
    assert_counts_follow(counts, expected)


@every_task
def test_keys_decide_the_batch(name):
    first, again, other = (
        draw(name, seed, 32, 12)["token_ids"] for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


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
            assert getattr(ours, method)(length) == getattr(theirs, method)(
                length
            )
    # The example and the line above it.
    ours, theirs = (sys.modules[type(t).__module__] for t in (ours, theirs))
    assert ours.__doc__ == theirs.__doc__


PROGRAM = """
import sys

class WithoutTensorFlow:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "keras"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, WithoutTensorFlow)

import jax
from datasets.jax_tasks import JAX_TASKS

for task in JAX_TASKS.values():
    task.draw_batch(jax.random.key(0), 2, 3, padded_length=8)
"""


@pytest.mark.process
def test_neither_tensorflow_nor_keras_is_needed():
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", PROGRAM]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
