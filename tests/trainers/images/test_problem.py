"""Sums that are computed by hand."""

import numpy as np
import pytest
from scipy import special

from keras_lengen.evaluation import wilson_interval
from trainers.images.problem import ClassificationProblem


class Problem(ClassificationProblem):
    """The part that needs no data."""

    training_batches = tokens_at = evaluation_batch = None

    def __init__(self):
        pass


LOGITS = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6],
        [6, 5, 4, 3, 2, 1, 0],
        [0, 0, 0, 9, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ],
    np.float32,
)
TARGETS = np.array([6, 4, 3, 1], np.int32)
USED = np.array([True, True, True, False])


@pytest.mark.parametrize("tokens", [1, 3])
def test_metrics(tokens):
    # Their mean is LOGITS.
    spread = np.arange(tokens) - (tokens - 1) / 2
    outputs = (LOGITS[:, None] + spread[:, None]).astype(np.float32)
    batch = {"targets": TARGETS, "used": USED}
    problem = Problem()
    sums = np.asarray(problem.sums(outputs, batch))
    losses = -special.log_softmax(LOGITS, axis=-1)[np.arange(4), TARGETS]
    found = problem.measure(sums)
    # The class of the second example is the fifth best.
    assert found["accuracy"] == pytest.approx(2 / 3)
    low, high = found["accuracy_low"], found["accuracy_high"]
    assert (low, high) == wilson_interval(found["accuracy"], 3)
    assert found["top_5_accuracy"] == 1
    assert found["loss"] == pytest.approx(np.mean(losses[:3]), rel=1e-6)
    total, count = problem.loss(outputs, batch)
    assert float(count) == 4
    assert float(total) == pytest.approx(np.sum(losses), rel=1e-6)


def test_fewer_than_five_classes():
    batch = {"targets": np.array([2]), "used": np.array([True])}
    sums = Problem().sums(np.array([[[3.0, 2.0, 1.0]]], np.float32), batch)
    found = Problem().measure(np.asarray(sums))
    assert (found["accuracy"], found["top_5_accuracy"]) == (0, 1)
