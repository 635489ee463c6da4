"""What is said of results."""

import types

import pytest

from trainers.engine.problem import Metric
from trainers.records.results import describe_score

BITS = Metric("nats_per_byte", "nats per byte", False, ("bits per byte", 1.5))


def make_problem(metric, lengths):
    return types.SimpleNamespace(
        metrics=(metric,),
        lengths=lengths,
        longest_trained=5,
        length_name="length",
        describe_length=str,
    )


@pytest.mark.parametrize(
    ("metric", "lengths", "final", "text"),
    [
        (
            Metric("exact_match"),
            (5, 10),
            {"score": 0.25},
            "score 0.250 (mean exact match at lengths above 5)",
        ),
        (
            Metric("exact_match"),
            (5, 10),
            {
                "score": 0.25,
                "generated_score": 0.5,
                "generated_exact_match_by_length": {"5": 1.0, "10": 0.5},
            },
            "generated score 0.500 (mean generated exact match at lengths "
            "above 5)",
        ),
        (
            BITS,
            (5,),
            {"score": 2.0},
            "score 2.000 (mean nats per byte at all lengths; 3.000 bits per "
            "byte)",
        ),
    ],
)
def test_a_score_in_words(metric, lengths, final, text):
    problem = make_problem(metric, lengths)
    assert describe_score({"final": final}, problem) == text
