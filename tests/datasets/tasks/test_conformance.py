"""What every task promises, tested on all that `TASKS` lists.

The row of a task is in its own test file, or in one of similar tasks.
"""

import collections
import importlib

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks import TASKS
from tests.datasets.tasks import (
    test_binary_numbers,
    test_expressions,
    test_strings,
)
from tests.datasets.tasks.chi_square import assert_counts_follow

ROWS = {
    **test_binary_numbers.ROWS,
    **test_expressions.ROWS,
    **test_strings.ROWS,
}
for listed, task in TASKS.items():
    if listed not in ROWS:
        file = type(task).__module__.rpartition(".")[2]
        module = importlib.import_module(f"tests.datasets.tasks.test_{file}")
        ROWS |= getattr(module, "ROWS", None) or {listed: module.ROW}

SMALL_ROWS = {name: row.small or row for name, row in ROWS.items()}
ENUMERATIONS = [
    (name, length)
    for name, row in SMALL_ROWS.items()
    for length in row.enumerated_lengths
]

every_task = pytest.mark.parametrize("name", TASKS)


def sample(name, seed, batch_size, length):
    return draw(TASKS[name], seed, batch_size, length)


def draw(task, seed, batch_size, length):
    batch = task.sample(seed, batch_size, length)
    return {key: tensor.numpy() for key, tensor in batch.items()}


def assert_follow(found, shares):
    rows = found.tolist()
    if found.ndim > 1:
        rows = map(tuple, rows)
    assert_counts_follow(collections.Counter(rows), shares)


def assert_answered(name, length, batch):
    """Shapes, types, ids, targets and mask are those of the row."""
    task, row = TASKS[name], ROWS[name]
    inputs, targets, mask = (
        batch[key] for key in ("inputs", "targets", "mask")
    )
    size = row.input_length(length)
    outputs = row.output_length(size)
    assert task.input_length(length) == size
    assert task.output_length(length) == outputs
    assert task.total_length(length) == size + outputs
    assert inputs.dtype == targets.dtype == np.int32
    assert mask.dtype == np.bool_
    assert inputs.shape == (16, size)
    assert targets.shape == mask.shape == (16, outputs)
    assert 0 <= inputs.min() <= inputs.max() < task.input_vocabulary_size
    expected = [row.oracle(problem) for problem in inputs.tolist()]
    assert targets.tolist() == expected, f"at length {length}"
    assert mask.tolist() == [row.scored(answer) for answer in expected]


@every_task
def test_attributes_are_the_published_ones(name):
    task = TASKS[name]
    attributes = (
        task.input_vocabulary_size,
        task.output_vocabulary_size,
        task.level,
        task.random_accuracy,
    )
    assert attributes == ROWS[name].published
    assert type(task)() == task


@every_task
def test_problems_are_answered_at_once(name):
    for length in (1, 2, 3, 6, 12, 41):
        batch = sample(name, (length, 1), 16, length)
        assert_answered(name, length, batch)
    other = sample(name, (41, 2), 16, 41)
    assert (batch["inputs"] != other["inputs"]).any()


@pytest.mark.product
@every_task
def test_problems_are_answered_in_a_graph(name):
    """One graph serves all lengths; its results depend only on the seed."""

    @tf.function(
        input_signature=[
            tf.TensorSpec((2,), tf.int64),
            tf.TensorSpec((), tf.int64),
        ]
    )
    def traced(seed, length):
        return TASKS[name].sample(seed, 16, length)

    for length in (1, 2, 3, 8, 40, 41, 500):
        batch = traced((length, 1), length)
        batch = {key: tensor.numpy() for key, tensor in batch.items()}
        assert_answered(name, length, batch)
        np.testing.assert_equal(batch, sample(name, (length, 1), 16, length))
    graph = traced.get_concrete_function().graph
    # An operation that calls a stateful function is stateful itself.
    stateful = [op for op in graph.get_operations() if op.op_def.is_stateful]
    assert not stateful


def test_the_seed_decides_the_batch():
    batch = sample("needle", (3, 4), 32, 12)
    np.testing.assert_equal(
        batch, sample("needle", tf.constant([3, 4]), 32, 12)
    )
    for other in ((3, 5), (2, 4), (4, 3), (3 + 2**32, 4), (-3, 4)):
        drawn = sample("needle", other, 32, 12)
        assert (batch["inputs"] != drawn["inputs"]).any()


def test_impossible_lengths_are_refused():
    with pytest.raises(ValueError, match=r"length 0, .* >= 1"):
        TASKS["needle"].sample((0, 0), 2, 0)
    with pytest.raises(TypeError):
        TASKS["needle"].sample((0, 0), 2, 2.5)


def test_vocabularies_that_do_not_fit_are_refused():
    for name, sizes, message in (
        ("mqar", (64, 16), "MQAR .* needs input_vocabulary_size=32; got 64"),
        ("mqar", (2, 1), "an output_vocabulary_size of at least 2; got 1"),
        ("mqmtar", (19, 256), "needs input_vocabulary_size=259; got 19"),
        ("frequent_words", (3, 2), "of at least 3; got 2"),
        ("common_words", (3, 3), "of at least 4; got 3"),
        ("unique_copy", (300, 150), "needs input_vocabulary_size=150; got 300"),
        ("needle", (32, 64), "64 symbols and 4 keys needs .* at least 68"),
        ("variable_tracking", (18, 16), "set the second to at least 2, and"),
        ("variable_tracking", (4, 1), "set the second to at least 2, and"),
    ):
        inputs, outputs = sizes
        with pytest.raises(ValueError, match=message):
            type(TASKS[name])(
                input_vocabulary_size=inputs, output_vocabulary_size=outputs
            )


@pytest.mark.parametrize(
    ("name", "length"),
    [
        pytest.param(name, length, marks=[pytest.mark.product] * others)
        for name, length in ENUMERATIONS
        # The default run has the longest of each task.
        for others in [length < SMALL_ROWS[name].enumerated_lengths[-1]]
    ],
)
def test_problems_follow_the_published_distribution(name, length):
    row = SMALL_ROWS[name]
    batch = draw(row.task or TASKS[name], (5, length), 20_000, length)
    problems = np.concatenate([batch["inputs"], batch["targets"]], axis=1)
    expected = {
        (*inputs, *row.oracle(list(inputs))): probability
        for inputs, probability in row.outcomes(length).items()
    }
    assert_follow(problems, expected)


@pytest.mark.product
@pytest.mark.parametrize(
    ("name", "number"),
    [(name, n) for name, row in ROWS.items() for n in range(len(row.laws))],
)
def test_long_problems_follow_laws(name, number):
    law = ROWS[name].laws[number]
    task = law.task or TASKS[name]
    batch = draw(task, (1, 2), law.examples, law.length)
    assert_follow(
        np.asarray(law.find(batch["inputs"], batch["targets"])), law.shares
    )


def pooled_accuracy(hits, mask, weights):
    """Right outputs per scored one, and the deviation of one example."""
    right, scored = (hits & mask).sum(axis=1), mask.sum(axis=1)
    accuracy = weights @ right / (weights @ scored)
    variance = weights @ (right - accuracy * scored) ** 2
    return accuracy, np.sqrt(variance) / (weights @ scored)


def best_constants(targets, mask, weights, symbols):
    """The commonest symbol of each place, where it is scored."""
    by_symbol = [
        weights @ (mask & (targets == symbol)) for symbol in range(symbols)
    ]
    return np.argmax(by_symbol, axis=0)


@pytest.mark.parametrize(("name", "length"), ENUMERATIONS)
def test_floors_are_exact_at_short_lengths(name, length):
    row = SMALL_ROWS[name]
    task = row.task or TASKS[name]
    outcomes = row.outcomes(length)
    weights = np.array(list(outcomes.values()))
    inputs = np.array(list(outcomes))
    targets = np.array([row.oracle(list(tokens)) for tokens in outcomes])
    mask = np.array([row.scored(answer) for answer in targets.tolist()])

    def assert_close(claimed, hits):
        accuracy, deviation = pooled_accuracy(hits, mask, weights)
        error = deviation / np.sqrt(row.floor_examples)
        assert claimed == pytest.approx(accuracy, abs=4 * error + 1e-9)
        assert type(claimed) is float

    floor_hits = max(
        (targets == rule for rule in row.floor_rules(inputs)),
        key=lambda hits: pooled_accuracy(hits, mask, weights)[0],
    )
    assert_close(task.floor_accuracy(length), floor_hits)
    best = best_constants(targets, mask, weights, task.output_vocabulary_size)
    assert_close(task.position_only_accuracy(length), targets == best)


@pytest.mark.product
@every_task
def test_floors_are_measured_at_a_long_length(name):
    task, row, length = TASKS[name], ROWS[name], 40
    # Rules are chosen on one batch and measured on another: the best of
    # several measured on the one that chose it would look too good.
    chosen, held_out = (sample(name, (6, n), 10_000, length) for n in (7, 8))
    targets, mask = chosen["targets"], chosen["mask"]
    weights = np.full(len(mask), 1 / len(mask))

    def assert_close(claimed, best):
        hits = held_out["targets"] == best
        accuracy, deviation = pooled_accuracy(hits, held_out["mask"], weights)
        # A claim that is measured itself strays as well.
        error = deviation * np.sqrt(1 / len(mask) + 1 / row.floor_examples)
        assert abs(accuracy - claimed) < 4 * error + 1e-9

    accuracies = [
        pooled_accuracy(targets == rule, mask, weights)[0]
        for rule in row.floor_rules(chosen["inputs"])
    ]
    best = row.floor_rules(held_out["inputs"])[np.argmax(accuracies)]
    assert_close(task.floor_accuracy(length), best)
    best = best_constants(targets, mask, weights, task.output_vocabulary_size)
    assert_close(task.position_only_accuracy(length), best)
