import pytest

from tests.trainers.toy import stand_in_problem
from trainers.choosing.advice import Outcome, advise, measure_outcome

PROBLEM = stand_in_problem(1, 20, floor_labels={"floor": "of labels"})


def make(scores, reach=40):
    return {name: Outcome(tuple(s), 30, reach, 1) for name, s in scores.items()}


@pytest.mark.parametrize(
    ("scores", "reach", "advice"),
    [
        ({"a": (0.9, 0.91), "b": (0.5, 0.5)}, 40, "a: score 0.905 with 2"),
        ({"a": (0.9, 0.8), "b": (0.85, 0.86)}, 40, "b or a; no difference"),
        ({"a": (0.9,), "b": (0.5,)}, 40, "a or b; no difference seen with"),
        ({"a": (0.9, 0.9), "b": (0.5, 0.5)}, 20, "No advice: no candidate"),
        ({"a": (0.9, 0.9), "b": (0.5, 0.5)}, None, "a: score 0.900 with 2"),
    ],
)
def test_advice_says_how_certain_it_is(scores, reach, advice):
    assert advise(make(scores, reach), PROBLEM).startswith(advice)


def test_outcomes_are_means_over_seeds():
    curves = {"10": 1.0, "20": 1.0, "30": 0.9, "40": 0.5, "50": 0.95}
    runs = [
        {
            "config": {"evaluation_examples": 1000},
            "final": {
                "accuracy_by_length": {n: v + d for n, v in curves.items()},
                "score": 0.7 + d,
            },
            "floor_by_length": dict.fromkeys(curves, 0.6),
            "train": {"seconds": 60 + 1000 * d},
        }
        for d in (-0.02, 0.02)
    ]
    outcome = measure_outcome(runs, PROBLEM)
    assert outcome.scores == pytest.approx((0.68, 0.72))
    assert (outcome.usable, outcome.reach) == (30, 30)
    assert outcome.minutes == pytest.approx(1)
