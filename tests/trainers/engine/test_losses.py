import numpy as np
import pytest

from trainers.engine.losses import cross_entropies, sum_counted


def test_losses_are_added_up_and_counted():
    logits = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")
    targets = np.array([[0, 1, 2, 0], [0, 2, 2, 0]])
    answer = np.array([[False, True, True, False]] * 2)
    expected = []
    for b, t in np.argwhere(answer):
        shares = np.exp(logits[b, t]) / np.exp(logits[b, t]).sum()
        expected.append(-np.log(shares[targets[b, t]]))
    loss, count = sum_counted(cross_entropies(logits, targets), answer)
    assert float(loss) == pytest.approx(np.sum(expected), rel=1e-5)
    assert float(count) == 4
