"""Bracketed expressions: values and their distribution."""

import collections

import pytest

from datasets.tasks.bracketed_expressions import (
    compute_value_probabilities,
    draw_expressions,
)
from tests.datasets.tasks.chi_square import assert_counts_follow


@pytest.mark.parametrize("operators", [2, 3])
def test_values_follow_their_probabilities(operators):
    _, values = draw_expressions((1, 2), 5000, 41, operators)
    shares = compute_value_probabilities(41, operators).tolist()
    counts = collections.Counter(values.numpy().ravel().tolist())
    assert_counts_follow(counts, dict(enumerate(shares)))
