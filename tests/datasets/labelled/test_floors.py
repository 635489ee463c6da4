import numpy as np
import pytest
from sklearn.naive_bayes import MultinomialNB

from datasets.labelled import floors
from tests.datasets.labelled.toy import open_toy, split_toy


def test_naive_bayes_is_that_of_scikit_learn(tmp_path):
    rng = np.random.default_rng(1)
    rows = []
    for number in range(900):
        label = number % 3
        odds = np.full(4, 1.0)
        odds[label] = 2
        text = rng.choice([*"abcd"], rng.integers(1, 9), p=odds / odds.sum())
        rows.append({"input": "".join(text), "target": label // 2})
    data = split_toy(
        open_toy(tmp_path / "rows.jsonl", rows), trained=(4,), tested=(8,)
    )

    def count(numbers):
        pairs = [data.read(number) for number in numbers]
        size = data.vocabulary.size
        tokens = [np.bincount(ids, minlength=size) for ids, _ in pairs]
        return np.array(tokens), np.array([label[0] for _, label in pairs])

    model = MultinomialNB().fit(*count(data.training))
    found = floors.label_floors(data, 50)
    for length, numbers in data.evaluated.items():
        tokens, labels = count(numbers[:50])
        assert found["floor"][length] == pytest.approx(
            model.score(tokens, labels)
        )
        assert found["most_frequent"][length] == pytest.approx(
            np.mean(labels == data.classes.index("0"))
        )
    assert found["floor"][8] > found["most_frequent"][8]


def test_tags_and_answers(tmp_path):
    rows = [{"input": ["a", "b"], "target": ["X", "Y"]}] * 30
    rows += [{"input": ["e", "a"], "target": ["Z", "Y"]}] * 9
    rows += [{"input": ["a", "b", "d"], "target": ["X", "X", "Y"]}] * 5
    store = open_toy(tmp_path / "rows.jsonl", rows, kind="tags")
    found = floors.tag_floors(split_toy(store), 9)
    # Predicted: X for a; Y for b, which is wrong; and Y, the usual tag, for d.
    assert found["floor"][4] == pytest.approx(2 / 3)
    assert found["most_frequent"][4] == pytest.approx(1 / 3)
    store = open_toy(tmp_path / "rows.jsonl", rows, kind="answer")
    assert floors.answer_floor(split_toy(store), 9)["floor"][4] == 0
