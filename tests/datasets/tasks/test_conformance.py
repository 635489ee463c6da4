"""What every task promises, tested on all that `TASKS` lists.

The row of a task is in its own test file.
"""

import collections
import importlib
import itertools
import pathlib
import re
import sys

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks import TASKS
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.products import product

LENGTHS = (*range(1, 13), 40, 41, 99, 500)


def read_rows():
    """Reads the rows of all test files, and those whose outcomes are few."""
    rows, small_rows = {}, {}
    for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
        if not re.search(r"^ROWS? = ", path.read_text(), re.M):
            continue
        if path == pathlib.Path(__file__):
            continue
        name = path.stem.removeprefix("test_")
        module = importlib.import_module(f"tests.datasets.tasks.test_{name}")
        rows |= getattr(module, "ROWS", None) or {name: module.ROW}
        if hasattr(module, "SMALL_ROW"):
            small_rows[name] = module.SMALL_ROW
    return rows, {**rows, **small_rows}


ROWS, SMALL_ROWS = read_rows()

every_task = pytest.mark.parametrize("name", TASKS)
# The default run has a task of each level where making its graph takes long.
one_task_of_each_level = pytest.mark.parametrize(
    "name",
    product(TASKS, keep=["parity_check", "stack_manipulation", "odds_first"]),
)
ENUMERATIONS = [
    (name, length)
    for name, row in SMALL_ROWS.items()
    for length in row.enumerated_lengths
]


def sample(name, seed, batch_size, length):
    return draw(TASKS[name], seed, batch_size, length)


def draw(task, seed, batch_size, length):
    batch = task.sample(seed, batch_size, length)
    return {key: tensor.numpy() for key, tensor in batch.items()}


def assert_answered(name, length, batch):
    row = ROWS[name]
    expected = [row.oracle(inputs) for inputs in batch["inputs"].tolist()]
    assert batch["targets"].tolist() == expected, f"at length {length}"


def assert_same_batches(first, second):
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_array_equal(first[key], second[key])


def test_every_row_belongs_to_a_listed_task():
    assert set(ROWS) == set(TASKS)


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


# A file with several tasks has an example of the first.
first_of_each_file = pytest.mark.parametrize(
    "name",
    {type(TASKS[name]).__module__: name for name in reversed(TASKS)}.values(),
)


@first_of_each_file
def test_example_in_the_file_is_right(name):
    text = sys.modules[type(TASKS[name]).__module__].__doc__
    inputs, targets = (
        [int(token) for token in re.search(pattern, text)[1].split()]
        for pattern in (r"\n    inputs +(.*)\n", r"\n    targets +(.*)\n")
    )
    assert len(inputs) > 1
    assert ROWS[name].oracle(inputs) == targets


@every_task
def test_eager_batches_are_well_formed_and_answered(name):
    task, row = TASKS[name], ROWS[name]
    for length in LENGTHS:
        batch = sample(name, (length, 1), 16, length)
        tokens = row.input_length(length)
        outputs = row.output_length(tokens)
        assert batch["inputs"].dtype == np.int32
        assert batch["targets"].dtype == np.int32
        assert batch["mask"].dtype == np.bool_
        assert batch["inputs"].shape == (16, tokens)
        assert batch["targets"].shape == (16, outputs)
        assert batch["mask"].shape == (16, outputs)
        assert batch["inputs"].min() >= 0
        assert batch["inputs"].max() < task.input_vocabulary_size
        assert batch["targets"].min() >= 0
        assert batch["targets"].max() < task.output_vocabulary_size
        expected = [row.scored(answer) for answer in batch["targets"].tolist()]
        assert batch["mask"].tolist() == expected
        assert_answered(name, length, batch)


@one_task_of_each_level
def test_tf_data_with_a_dynamic_length_gives_the_eager_batches(name):
    seeds = [(length, 1) for length in LENGTHS]
    dataset = tf.data.Dataset.from_tensor_slices((seeds, list(LENGTHS)))
    dataset = dataset.map(
        lambda seed, length: TASKS[name].sample(seed, 16, length)
    )
    assert dataset.element_spec["inputs"].shape.as_list() == [16, None]
    assert dataset.element_spec["targets"].shape[0] == 16
    for length, batch in zip(LENGTHS, dataset.as_numpy_iterator(), strict=True):
        assert_answered(name, length, batch)
        assert_same_batches(batch, sample(name, (length, 1), 16, length))


@one_task_of_each_level
@pytest.mark.parametrize("length", product([1, 2, 7], keep=[7]))
def test_shapes_are_static_for_a_static_length(name, length):
    row = ROWS[name]
    dataset = tf.data.Dataset.from_tensors((3, 4))
    dataset = dataset.map(lambda *seed: TASKS[name].sample(seed, 8, length))
    tokens = row.input_length(length)
    outputs = row.output_length(tokens)
    shapes = {key: spec.shape for key, spec in dataset.element_spec.items()}
    assert shapes == {
        "inputs": (8, tokens),
        "targets": (8, outputs),
        "mask": (8, outputs),
    }


@one_task_of_each_level
def test_graph_is_pure_tensorflow(name):
    @tf.function(
        input_signature=[
            tf.TensorSpec((2,), tf.int64),
            tf.TensorSpec((), tf.int32),
            tf.TensorSpec((), tf.int64),
        ]
    )
    def traced(seed, batch_size, length):
        return TASKS[name].sample(seed, batch_size, length)

    graph = traced.get_concrete_function().graph
    # An operation that calls a stateful function is stateful itself.
    stateful = [op for op in graph.get_operations() if op.op_def.is_stateful]
    assert not stateful
    definition = graph.as_graph_def()
    nodes = itertools.chain(
        definition.node,
        *(function.node_def for function in definition.library.function),
    )
    assert not [node.op for node in nodes if "PyFunc" in node.op]
    batch = traced((1, 2), 5, 12)
    assert_same_batches(
        {key: tensor.numpy() for key, tensor in batch.items()},
        sample(name, (1, 2), 5, 12),
    )


@every_task
def test_seed_decides_the_batch(name):
    batch = sample(name, (3, 4), 32, 12)
    for same in (
        [3, 4],
        np.array([3, 4]),
        tf.constant([3, 4], tf.int32),
        tf.constant([3, 4], tf.int64),
    ):
        assert_same_batches(batch, sample(name, same, 32, 12))
    for other in ((3, 5), (2, 4), (4, 3), (3 + 2**32, 4), (-3, 4)):
        assert (batch["inputs"] != sample(name, other, 32, 12)["inputs"]).any()


@one_task_of_each_level
def test_lengths_are_those_of_the_arrays(name):
    task = TASKS[name]
    for length in LENGTHS:
        batch = sample(name, (0, 0), 2, length)
        tokens = batch["inputs"].shape[1]
        outputs = batch["targets"].shape[1]
        for given in (
            length,
            tf.constant(length),
            tf.constant(length, "int64"),
        ):
            assert int(task.input_length(given)) == tokens
            assert int(task.output_length(given)) == outputs
            assert int(task.total_length(given)) == tokens + outputs
        assert type(task.total_length(length)) is int


@every_task
@pytest.mark.parametrize("length", [0, -1])
def test_impossible_lengths_are_refused(name, length):
    with pytest.raises(ValueError, match=f"length {length}, .* length >= 1"):
        TASKS[name].sample((0, 0), 2, length)


@pytest.mark.parametrize(
    ("name", "length"),
    product(
        ENUMERATIONS,
        keep=lambda name, length: (
            length in (2, 3, SMALL_ROWS[name].enumerated_lengths[-1])
        ),
    ),
)
def test_problems_follow_the_published_distribution(name, length):
    row = SMALL_ROWS[name]
    batch = draw(row.task or TASKS[name], (5, length), 20_000, length)
    problems = np.concatenate([batch["inputs"], batch["targets"]], axis=1)
    expected = {
        (*inputs, *row.oracle(list(inputs))): probability
        for inputs, probability in row.outcomes(length).items()
    }
    counts = collections.Counter(map(tuple, problems.tolist()))
    assert_counts_follow(counts, expected)


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


@every_task
@pytest.mark.parametrize("length", product([40, 41], keep=[41]))
def test_floors_are_measured_at_long_lengths(name, length):
    task, row = TASKS[name], ROWS[name]
    batch = sample(name, (6, 7), 20_000, length)
    # Rules are chosen on one half and measured on the other: the best of
    # several measured on the half that chose it would look too good.
    (
        (inputs, held_out_inputs),
        (targets, held_out_targets),
        (mask, held_out_mask),
    ) = (np.split(batch[key], 2) for key in ("inputs", "targets", "mask"))
    weights = np.full(len(mask), 1 / len(mask))

    def assert_close(claimed, best):
        accuracy, deviation = pooled_accuracy(
            held_out_targets == best, held_out_mask, weights
        )
        # A claim that is measured itself strays as well.
        error = deviation * np.sqrt(1 / len(mask) + 1 / row.floor_examples)
        assert abs(accuracy - claimed) < 4 * error + 1e-9

    accuracies = [
        pooled_accuracy(targets == rule, mask, weights)[0]
        for rule in row.floor_rules(inputs)
    ]
    best = row.floor_rules(held_out_inputs)[np.argmax(accuracies)]
    assert_close(task.floor_accuracy(length), best)
    best = best_constants(targets, mask, weights, task.output_vocabulary_size)
    assert_close(task.position_only_accuracy(length), best)
