import pytest

from tests.trainers.toy import stand_in_problem
from trainers.engine.problem import Metric
from trainers.records.results import describe_floor, describe_score

BITS = Metric("nats_per_byte", "nats per byte", False, ("bits per byte", 1.5))


def make_problem(metric, lengths):
    floors = {"floor": "", "position_only": ""}
    known = {"metrics": (metric,), "lengths": lengths, "floor_labels": floors}
    return stand_in_problem(5, **known)


def test_a_score_in_words():
    written = {"generated_exact_match_by_length": {"5": 1.0, "10": 0.5}}
    final = {"score": 0.25, "generated_score": 0.5, **written}
    problem = make_problem(Metric("exact_match"), (5, 10))
    text = describe_score({"final": final}, problem)
    assert text.startswith("generated score 0.500 (mean generated exact match")
    assert text.endswith("at lengths above 5)")
    problem = make_problem(BITS, (5,))
    text = describe_score({"final": {"score": 2.0}}, problem)
    assert text.endswith("at all lengths; 3.000 bits per byte)")


@pytest.mark.parametrize(
    ("curve", "examples", "text"),
    [
        ((0.5, 1.0, 0.9, 0.9), 200, "above the floor of 0.40 up to length 10,"),
        ((1.0, 1.0, 0.9, 0.45), 200, "above the floor of 0.50 up to length 5"),
        # A little above the floor of length 5 by chance.
        ((1.0, 0.95, 0.56, 0.9), 200, "above the floor of 0.90 up to length 3"),
        ((1.0, 0.9, 0.9, 0.9), 200, "not above the floor, 0.40 at length 10"),
        ((1.0, 1.0, None, 0.9), 200, "above the floor of 0.40 up to length 10"),
        # With 20 examples, a perfect result may be chance.
        ((1.0, 1.0, 0.5, 0.9), 20, "not above the floor, 0.40 at length 10"),
    ],
)
def test_how_far_results_are_above_the_floor(curve, examples, text):
    problem = make_problem(Metric("accuracy"), (1, 3, 5, 10))
    by_length = dict(zip(("1", "3", "5", "10"), curve, strict=True))
    measured = {n: value for n, value in by_length.items() if value is not None}
    results = {
        "config": {"evaluation_examples": examples},
        "final": {"accuracy_by_length": measured},
        "floor_by_length": {"1": 1.0, "3": 0.9, "5": 0.5, "10": 0.3},
        "position_only_by_length": {"1": 0.5, "3": 0.5, "5": 0.5, "10": 0.4},
    }
    assert describe_floor(results, problem).startswith(text)


def test_how_far_losses_are_below_the_floor():
    problem = make_problem(BITS, (5, 10))
    results = {
        "config": {"evaluation_examples": 20},
        "final": {"nats_per_byte_by_length": {"5": 0.9, "10": 1.4}},
        "floor_by_length": {"5": 2.0, "10": 1.5},
        "position_only_by_length": {"5": 1.8, "10": 1.3},
    }
    text = describe_floor(results, problem)
    assert text == "above the floor of 1.80 up to length 5"
    problem.floor_labels = {}
    assert describe_floor(results, problem) == ""
