import pytest

from tests.trainers.toy import toy_config
from trainers.errors import ConfigError
from trainers.options.evaluation import with_evaluation


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (
            {"encoding": "RandomizedRoPE(resample='example')"},
            {
                "encoding": "RandomizedRoPE(resample='example', "
                "evaluation='even')"
            },
        ),
        (
            {"encoding": "RandomizedRoPE(evaluation='random')"},
            {"encoding": "RandomizedRoPE(evaluation='even')"},
        ),
        (
            {"encoding": "ALiBi", "sampler": "RandomizedPositions"},
            {"sampler": "RandomizedPositions(evaluation='even')"},
        ),
        (
            {
                "encoding": "AxialEncoding(row=RoPE(), column=RoPE())",
                "sampler": "GridPositions(width=3, "
                "row=RandomizedPositions(max_position=9))",
            },
            {
                "encoding": "AxialEncoding(row=RoPE, column=RoPE)",
                "sampler": "GridPositions(width=3, "
                "row=RandomizedPositions(max_position=9, evaluation='even'))",
            },
        ),
    ],
)
def test_every_sampler_gets_the_value(flags, expected):
    config = toy_config(**flags, model_dim=16)
    changed = with_evaluation(config, "even")
    for name, value in expected.items():
        assert getattr(changed, name) == value


def test_without_a_value_nothing_changes():
    config = toy_config(encoding="RandomizedRoPE( resample='batch' )")
    assert with_evaluation(config, "") is config


@pytest.mark.parametrize(
    ("encoding", "value", "message"),
    [
        ("RoPE", "even", "RoPE draws none: leave it out"),
        ("RandomizedRoPE", "zero", "evaluation"),
    ],
)
def test_mistakes(encoding, value, message):
    with pytest.raises(ConfigError, match=message):
        with_evaluation(toy_config(encoding=encoding), value)
