"""What every task promises, tested on all that `TASKS` lists.

A new task needs a row here. Its oracle answers a problem in plain Python, its
outcomes are the published distribution written out, and its floor rules are
the simple predictors that `floor_accuracy` claims to be the best of.
"""

import collections
import dataclasses
import itertools
import math
import re
import sys
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks import TASKS
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.products import product

REGULAR = "regular"
CONTEXT_FREE = "deterministic_context_free"
CONTEXT_SENSITIVE = "context_sensitive"

LENGTHS = (*range(1, 13), 40, 41, 99, 500)


@dataclasses.dataclass(frozen=True)
class Row:
    """A task as the papers describe it.

    Attributes:
        published: Input vocabulary, output vocabulary, level and random
            accuracy.
        oracle: Maps a list of input ids to the list of target ids.
        outcomes: Maps a length to the probability of every input of it.
        floor_rules: Maps inputs `(N, n)` to a list of predictions, each
            `(N, m)` or a shape that broadcasts to it.
        input_length: Maps a length to the number of tokens.
        output_length: Maps the number of input tokens to that of outputs.
        scored: Maps a list of target ids to a list of bools.
        enumerated_lengths: Lengths at which to ask for all outcomes.
        floor_examples: Examples on which the task measures its floors, if it
            does not compute them.
    """

    published: tuple
    oracle: Callable
    outcomes: Callable
    floor_rules: Callable
    input_length: Callable = lambda length: length
    output_length: Callable = lambda length: 1
    scored: Callable = lambda targets: [True] * len(targets)
    enumerated_lengths: range = range(1, 6)
    floor_examples: float = math.inf


def unequal_pairs(bits):
    return [sum(a != b for a, b in itertools.pairwise(bits)) % 2]


def walk(steps):
    place = 0
    for step in steps:
        if step == 2:
            place = 0 if place == 4 else place + 1
        if step == 0:
            place = 4 if place == 0 else place - 1
    return [place]


def value(tokens):
    return [eval("".join("01234+-*()"[token] for token in tokens)) % 5]


def odd_indices_first(bits):
    order = sorted(range(len(bits)), key=lambda index: (index % 2 == 0, index))
    return [bits[index] for index in order]


def hidden_bit(tokens):
    if tokens == [1]:
        return [1]
    string = [token for token in tokens if token != 3]
    place = string.index(2)
    return [string[place - len(string) // 2]]


def final_stack(tokens):
    stack = []
    for token in tokens:
        if token != 2:
            stack.append({0: 0, 1: 1, 3: 0, 4: 1}[token])
        elif stack:
            stack.pop()
    return [*reversed(stack), 2, *[0] * (len(tokens) - len(stack))]


def solution(tokens):
    if len(tokens) < 3:
        assert not any(tokens)
        return [0]
    equation = "".join("01234+-()x="[token] for token in tokens)
    left, right = equation.split("=")
    solutions = [
        digit
        for digit in range(5)
        if eval(left.replace("x", str(digit))) % 5 == int(right)
    ]
    assert len(solutions) == 1
    return solutions


def from_bits(bits):
    return sum(bit << place for place, bit in enumerate(bits))


def to_bits(number, count):
    return [number >> place & 1 for place in range(count)]


def operands(tokens):
    separator = tokens.index(2) if 2 in tokens else len(tokens)
    return from_bits(tokens[:separator]), from_bits(tokens[separator + 1 :])


def terminated(number, outputs):
    bits = to_bits(number, max(number.bit_length(), 1))
    return [*bits[: outputs - 1], 2, *[0] * (outputs - 1 - len(bits))]


def up_to_termination(targets):
    end = targets.index(2)
    return [place <= end for place in range(len(targets))]


def root(tokens):
    number = from_bits(tokens[::-1])
    return to_bits(math.isqrt(number), (len(tokens) + 1) // 2)[::-1]


def equally_likely(inputs):
    counts = collections.Counter(inputs)
    return {key: count / counts.total() for key, count in counts.items()}


def strings(alphabet_size):
    def outcomes(length):
        return equally_likely(
            itertools.product(range(alphabet_size), repeat=length)
        )

    return outcomes


def expressions(length):
    alternating = [
        [5, 6, 7] if index % 2 else [0, 1, 2, 3, 4]
        for index in range(length - (length % 2 == 0))
    ]
    return equally_likely(itertools.product(*alternating))


def stacks_and_instructions(length):
    if length == 1:
        return strings(2)(1)
    outcomes = {}
    for height in range(1, length):
        parts = [[0, 1]] * height + [[2, 3, 4]] * (length - height)
        inputs = list(itertools.product(*parts))
        outcomes |= dict.fromkeys(inputs, 1 / (length - 1) / len(inputs))
    return outcomes


def bracketed(size, operators):
    if size < 5:
        form = ["{}", "-{}", "({})", "(-{})"][size - 1]
        return {form.format(digit): 1 / 5 for digit in range(5)}
    outcomes = {}
    for left in range(1, size - 3):
        firsts = bracketed(left, operators)
        seconds = bracketed(size - 3 - left, operators)
        for parts in itertools.product(firsts, operators, seconds):
            probability = firsts[parts[0]] * seconds[parts[2]]
            probability /= (size - 4) * len(operators)
            outcomes[f"({''.join(parts)})"] = probability
    return outcomes


def bracketed_expressions(length):
    return {
        tuple(map("01234+-*()".index, text)): probability
        for text, probability in bracketed(length, "+-*").items()
    }


def equations(length):
    if length < 3:
        return {(0,) * length: 1.0}
    outcomes = collections.Counter()
    for text, probability in bracketed(length - 2, "+-").items():
        result = eval(text) % 5
        for start in range(len(text)):
            place = start
            while not text[place].isdigit():
                place = (place + 1) % len(text)
            equation = f"{text[:place]}x{text[place + 1 :]}={result}"
            inputs = tuple(map("01234+-()x=".index, equation))
            outcomes[inputs] += probability / len(text)
    return outcomes


def two_numbers(length):
    if length < 3:
        return equally_likely(
            tuple(to_bits(number, length)) for number in range(2**length - 1)
        )
    outcomes = {}
    for count in range(1, length - 1):
        rest = length - 1 - count
        pairs = list(itertools.product(range(1, 2**count), range(1, 2**rest)))
        for first, second in pairs:
            inputs = (*to_bits(first, count), 2, *to_bits(second, rest))
            outcomes[inputs] = 1 / (length - 2) / len(pairs)
    return outcomes


def numbers_from_one(length):
    return equally_likely(
        tuple(to_bits(number, length)[::-1]) for number in range(1, 2**length)
    )


def doubled_strings_with_a_gap(length):
    if length == 1:
        return {(1,): 1.0}
    inputs = []
    for bits in itertools.product(range(2), repeat=length // 2):
        for place in range(2 * len(bits)):
            doubled = list(bits + bits)
            doubled[place] = 2
            inputs.append((*doubled, *[3] * (length % 2)))
    return equally_likely(inputs)


def constants(alphabet_size):
    def rules(inputs):
        del inputs
        return [np.full((1, 1), symbol) for symbol in range(alphabet_size)]

    return rules


def most_frequent_symbol(inputs):
    counts = [(inputs == symbol).sum(axis=1) for symbol in range(5)]
    return [np.argmax(counts, axis=0)[:, np.newaxis]]


def unequal_ends_if_balanced(inputs):
    length = inputs.shape[1]
    imbalance = np.abs(2 * inputs.sum(axis=1, keepdims=True) - length)
    return [imbalance <= limit for limit in range(-1, length + 1)]


def threshold_on_ones(inputs):
    ones = (inputs == 1).sum(axis=1, keepdims=True)
    rules = [ones >= limit for limit in range(inputs.shape[1] + 1)]
    return rules + [~rule for rule in rules]


def threshold_on_ones_or_termination(inputs):
    return [*threshold_on_ones(inputs), np.full((1, 1), 2)]


def termination_after_many_pops(inputs):
    zeros, ones = (
        ((inputs == bit) | (inputs == 3 + bit)).sum(axis=1, keepdims=True)
        for bit in (0, 1)
    )
    pops = inputs.shape[1] - zeros - ones
    return [
        np.where(pops >= limit, 2, ones > zeros)
        for limit in range(inputs.shape[1] + 2)
    ]


# As many as the measured floors are measured on.
MEASURED = 4096

ROWS = {
    "even_pairs": Row(
        (2, 2, REGULAR, 0.5),
        unequal_pairs,
        strings(2),
        unequal_ends_if_balanced,
    ),
    "modular_arithmetic": Row(
        (9, 5, REGULAR, 0.2),
        value,
        expressions,
        constants(5),
        input_length=lambda length: length if length % 2 else length - 1,
    ),
    "parity_check": Row(
        (2, 2, REGULAR, 0.5),
        lambda bits: [bits.count(1) % 2],
        strings(2),
        constants(2),
    ),
    "cycle_navigation": Row(
        (3, 5, REGULAR, 0.2),
        walk,
        strings(3),
        constants(5),
    ),
    "stack_manipulation": Row(
        (5, 3, CONTEXT_FREE, 0.5),
        final_stack,
        stacks_and_instructions,
        termination_after_many_pops,
        output_length=lambda length: length + 1,
        scored=up_to_termination,
        enumerated_lengths=range(1, 8),
        floor_examples=MEASURED,
    ),
    "reverse_string": Row(
        (2, 2, CONTEXT_FREE, 0.5),
        lambda bits: list(reversed(bits)),
        strings(2),
        most_frequent_symbol,
        output_length=lambda length: length,
    ),
    "modular_arithmetic_brackets": Row(
        (11, 5, CONTEXT_FREE, 0.2),
        value,
        bracketed_expressions,
        constants(5),
        enumerated_lengths=range(1, 10),
    ),
    "solve_equation": Row(
        (11, 5, CONTEXT_FREE, 0.2),
        solution,
        equations,
        constants(5),
        enumerated_lengths=range(1, 12),
    ),
    "duplicate_string": Row(
        (2, 2, CONTEXT_SENSITIVE, 0.5),
        lambda bits: 2 * bits,
        strings(2),
        most_frequent_symbol,
        output_length=lambda length: 2 * length,
    ),
    "missing_duplicate_string": Row(
        (4, 2, CONTEXT_SENSITIVE, 0.5),
        hidden_bit,
        doubled_strings_with_a_gap,
        threshold_on_ones,
    ),
    "odds_first": Row(
        (2, 2, CONTEXT_SENSITIVE, 0.5),
        odd_indices_first,
        strings(2),
        most_frequent_symbol,
        output_length=lambda length: length,
    ),
    "binary_addition": Row(
        (3, 3, CONTEXT_SENSITIVE, 0.5),
        lambda tokens: terminated(sum(operands(tokens)), len(tokens) + 1),
        two_numbers,
        threshold_on_ones_or_termination,
        output_length=lambda length: length + 1,
        scored=up_to_termination,
        enumerated_lengths=range(1, 11),
        floor_examples=MEASURED,
    ),
    "binary_multiplication": Row(
        (3, 3, CONTEXT_SENSITIVE, 0.5),
        lambda tokens: terminated(math.prod(operands(tokens)), len(tokens)),
        two_numbers,
        threshold_on_ones_or_termination,
        output_length=lambda length: length,
        scored=up_to_termination,
        enumerated_lengths=range(1, 11),
        floor_examples=MEASURED,
    ),
    "compute_sqrt": Row(
        (2, 2, CONTEXT_SENSITIVE, 0.5),
        root,
        numbers_from_one,
        constants(2),
        output_length=lambda length: (length + 1) // 2,
        enumerated_lengths=range(1, 9),
    ),
    "bucket_sort": Row(
        (5, 5, CONTEXT_SENSITIVE, 0.2),
        sorted,
        strings(5),
        most_frequent_symbol,
        output_length=lambda length: length,
    ),
}

every_task = pytest.mark.parametrize("name", TASKS)
# The default run has a task of each level where making its graph takes long.
one_task_of_each_level = pytest.mark.parametrize(
    "name",
    product(TASKS, keep=["parity_check", "stack_manipulation", "odds_first"]),
)
ENUMERATIONS = [
    (name, length)
    for name, row in ROWS.items()
    for length in row.enumerated_lengths
]


def sample(name, seed, batch_size, length):
    batch = TASKS[name].sample(seed, batch_size, length)
    return {key: tensor.numpy() for key, tensor in batch.items()}


def assert_answered(name, length, batch):
    row = ROWS[name]
    expected = [row.oracle(inputs) for inputs in batch["inputs"].tolist()]
    assert batch["targets"].tolist() == expected, f"at length {length}"


def assert_same_batches(first, second):
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_array_equal(first[key], second[key])


def test_every_task_has_a_row():
    assert list(ROWS) == list(TASKS)


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
            length in (2, 3, ROWS[name].enumerated_lengths[-1])
        ),
    ),
)
def test_problems_follow_the_published_distribution(name, length):
    batch = sample(name, (5, length), 20_000, length)
    problems = np.concatenate([batch["inputs"], batch["targets"]], axis=1)
    row = ROWS[name]
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
    task, row = TASKS[name], ROWS[name]
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
        assert abs(accuracy - claimed) < 4 * error

    accuracies = [
        pooled_accuracy(targets == rule, mask, weights)[0]
        for rule in row.floor_rules(inputs)
    ]
    best = row.floor_rules(held_out_inputs)[np.argmax(accuracies)]
    assert_close(task.floor_accuracy(length), best)
    best = best_constants(targets, mask, weights, task.output_vocabulary_size)
    assert_close(task.position_only_accuracy(length), best)
