"""Scores of predictors that do not know the order of the tokens.

A model that is not better has learned nothing of the order.
"""

import collections

import numpy as np

MOST = 50_000
"""Largest number of training examples that a predictor is fitted to."""

MOST_COUNTS = 2**24
"""Largest number of counts of tokens in classes."""

_SEED = 0


def label_floors(data, most):
    """Returns the accuracy of two predictors of labels.

    Args:
        data: `LabelledData`.
        most: int. Number of examples of each length to predict.

    Returns:
        Dict of `{length: accuracy}`: `"floor"`, of naive Bayes, multinomial
        with add-one smoothing, on the counts of the tokens; and
        `"most_frequent"`, of the most frequent label of training.
    """
    classes = len(data.classes)
    # With many classes and tokens, some tokens share a count.
    width = min(data.vocabulary.size, MOST_COUNTS // classes)
    of_tokens, of_labels = np.ones((classes, width)), np.zeros(classes)
    for tokens, label in _training(data):
        np.add.at(of_tokens[label[0]], tokens % width, 1)
        of_labels[label[0]] += 1
    scores = np.log(of_tokens / of_tokens.sum(axis=1, keepdims=True))
    with np.errstate(divide="ignore"):
        prior = np.log(of_labels / of_labels.sum())

    def guess(tokens):
        return np.argmax(prior + scores[:, tokens % width].sum(axis=1))

    pairs = _read_evaluated(data, most)
    return {
        "floor": _score(pairs, lambda tokens: [guess(tokens)]),
        "most_frequent": _score(pairs, lambda tokens: [np.argmax(of_labels)]),
    }


def tag_floors(data, most):
    """Returns the accuracy of two predictors of tags.

    Args:
        data: `LabelledData`.
        most: int. Number of examples of each length to predict.

    Returns:
        Dict of `{length: accuracy}`: `"floor"`, of the most frequent tag of
        each token in training; and `"most_frequent"`, of the most frequent tag.
    """
    of_tokens = collections.defaultdict(collections.Counter)
    of_all = collections.Counter()
    for tokens, tags in _training(data):
        for token, tag in zip(tokens.tolist(), tags.tolist(), strict=True):
            of_tokens[token][tag] += 1
            of_all[tag] += 1
    ((common, _),) = of_all.most_common(1)
    guesses = np.full(data.vocabulary.size, common)
    for token, tags in of_tokens.items():
        ((guesses[token], _),) = tags.most_common(1)
    pairs = _read_evaluated(data, most)
    return {
        "floor": _score(pairs, lambda tokens: guesses[tokens]),
        "most_frequent": _score(
            pairs, lambda tokens: np.full(len(tokens), common)
        ),
    }


def answer_floor(data, most):
    """Returns the exact match of the most frequent answer of training.

    Args:
        data: `LabelledData`.
        most: int. Number of examples of each length to predict.

    Returns:
        Dict of `{length: exact match}`, as `"floor"`.
    """
    counts = collections.Counter(
        tuple(answer.tolist()) for _, answer in _training(data)
    )
    ((common, _),) = counts.most_common(1)
    return {
        "floor": {
            length: float(
                np.mean([tuple(answer.tolist()) == common for _, answer in of])
            )
            for length, of in _read_evaluated(data, most).items()
        }
    }


def _training(data):
    """Yields some training examples."""
    numbers = data.training
    if len(numbers) > MOST:
        rng = np.random.default_rng(_SEED)
        numbers = rng.choice(numbers, MOST, replace=False)
    for number in numbers:
        yield data.read(number)


def _read_evaluated(data, most):
    """Returns a dict from lengths to the examples that are predicted."""
    return {
        length: [data.read(number) for number in numbers[:most]]
        for length, numbers in data.evaluated.items()
    }


def _score(pairs, guess):
    """Returns which share of the targets of each length a function guesses."""
    return {
        length: float(
            np.concatenate(
                [np.equal(guess(tokens), target) for tokens, target in of]
            ).mean()
        )
        for length, of in pairs.items()
    }
