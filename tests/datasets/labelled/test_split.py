import numpy as np
import pytest

from datasets.labelled.rows import LabelledError
from datasets.labelled.split import choose_lengths
from tests.datasets.labelled.toy import open_toy, split_toy

RNG = np.random.default_rng(0)
ROWS = [
    {"input": "".join(RNG.choice([*"abcdefgh"], n % 9 + 1)), "target": n % 2}
    for n in range(2000)
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return open_toy(tmp_path_factory.mktemp("split") / "rows.jsonl", ROWS)


def test_every_example_is_trained_evaluated_or_unused(store):
    data = split_toy(store)
    inputs = [row["input"] for row in ROWS]
    trained = {inputs[n] for n in data.training}
    assert {*map(len, trained)} == {1, 2}
    assert {*data.evaluated} == {2, 4, 8}
    for end, lengths in ((2, {1, 2}), (4, {3, 4}), (8, {5, 6, 7, 8})):
        found = [inputs[n] for n in data.evaluated[end]]
        assert {*map(len, found)} <= lengths
        # Equal inputs are on the same side.
        assert trained.isdisjoint(found)
        assert data.seen_share(end, None) == 0
    total = len(data.training) + sum(map(len, data.evaluated.values()))
    assert total + data.unused == len(ROWS)
    assert data.unused == sum(len(text) > 8 for text in inputs)
    held_out = len(data.evaluated[2]) / (total - len(data.evaluated[4]))
    assert 0 < held_out < 0.3


def test_other_examples_take_the_place_of_longer_ones(store, tmp_path):
    rows = [{"input": "zz", "target": 1}, {"input": "abcd", "target": "new"}]
    rows += [{"input": ROWS[n]["input"], "target": 0} for n in (0, 1, 9, 10)]
    other = open_toy(tmp_path / "other.jsonl", rows, kind="label")
    data = split_toy(store, other)
    assert len(data.evaluated[4]) == 1 and 8 not in data.evaluated
    assert data.classes == ("0", "1", "new")
    assert data.new_classes == ("new",)
    assert data.seen_share(2, None) > 0
    problems = " ".join(data.describe_problems())
    assert "1 of 3 classes are in no training example: 'new'" in problems
    assert "inputs that are also evaluated: of length" in problems
    tokens, label = data.read(len(ROWS) + 1)
    assert data.vocabulary.detokenize(tokens) == "abcd"
    assert label.tolist() == [2]
    # Training has no such character.
    assert data.read(len(ROWS))[0].tolist() == [2, 2]


def test_the_vocabulary_has_the_most_frequent_pieces_of_training(tmp_path):
    rows = [{"input": "aab", "target": "x"}] * 40
    rows += [{"input": "aabc", "target": "y"}] * 40
    rows += [{"input": "dddddd", "target": "x"}] * 40
    store = open_toy(tmp_path / "rows.jsonl", rows, kind="label")
    for size, words in ((100, ("a", "b", "c")), (2, ("a", "b"))):
        data = split_toy(store, trained=(3, 4), tested=(8,), size=size)
        assert data.vocabulary.words[4:] == words


def test_the_shorter_half_is_trained(store):
    trained, tested = choose_lengths(store)
    lengths = np.array([len(row["input"]) for row in ROWS])
    assert trained[-1] == np.sort(lengths)[len(lengths) // 2 - 1]
    assert trained == (2, 3, 4, 5)
    assert tested == (6, 7, 8, 9)
    assert choose_lengths(store, longest=1) == ((1,), (3, 4, 5, 6, 7, 8))
    # With other examples, all of them are.
    assert choose_lengths(store, store)[0][-1] == 9


def test_nothing_to_train_on_or_to_evaluate(tmp_path):
    rows = [{"input": "abc", "target": "x"}] * 8
    store = open_toy(tmp_path / "rows.jsonl", rows, kind="label")
    with pytest.raises(LabelledError, match="no example is at most 2 long: th"):
        split_toy(store)
    with pytest.raises(LabelledError, match=r"is left to evaluate|at most 3"):
        split_toy(store, trained=(3,), tested=(3,))
