"""Bracketed expressions: values and their distribution."""

import collections

import numpy as np
import pytest

from datasets.tasks.bracketed_expressions import (
    compute_value_probabilities,
    draw_expressions,
)
from tests.datasets.tasks.chi_square import assert_counts_follow
from tests.datasets.tasks.test_modular_arithmetic_brackets import ROW


@pytest.mark.parametrize("operators", [2, 3])
def test_values_follow_their_probabilities(operators):
    _, values = draw_expressions((1, 2), 5000, 41, operators)
    shares = compute_value_probabilities(41, operators).tolist()
    counts = collections.Counter(values.numpy().ravel().tolist())
    assert_counts_follow(counts, dict(enumerate(shares)))


def test_value_probabilities_by_enumeration():
    expected = np.zeros(5)
    for tokens, probability in ROW.outcomes(9).items():
        expected[ROW.oracle(tokens)] += probability
    np.testing.assert_allclose(compute_value_probabilities(9, 3), expected)
    np.testing.assert_allclose(compute_value_probabilities(9, 2), 1 / 5)
