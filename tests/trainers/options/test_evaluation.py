import pytest

from tests.trainers.toy import toy_config
from trainers.errors import ConfigError
from trainers.options.evaluation import with_evaluation

ROWS = "GridPositions(width=3, row=RandomizedPositions(max_position=9{}))"


def test_every_sampler_gets_the_value():
    for flags, encoding, sampler in (
        (
            {"encoding": "RandomizedRoPE(ordered=False, evaluation='random')"},
            "RandomizedRoPE(ordered=False, evaluation='even')",
            "",
        ),
        (
            {"encoding": "ALiBi", "sampler": "RandomizedPositions"},
            "ALiBi",
            "RandomizedPositions(evaluation='even')",
        ),
        (
            {
                "encoding": "AxialEncoding(row=RoPE(), column=RoPE())",
                "sampler": ROWS.format(""),
            },
            "AxialEncoding(row=RoPE, column=RoPE)",
            ROWS.format(", evaluation='even'"),
        ),
    ):
        config = toy_config(**flags, model_dim=16)
        changed = with_evaluation(config, "even")
        assert (changed.encoding, changed.sampler) == (encoding, sampler)
        assert with_evaluation(config, "") is config


def test_mistakes():
    for encoding, value, message in (
        ("RoPE", "even", "RoPE draws none: leave it out"),
        ("RandomizedRoPE", "zero", "evaluation"),
    ):
        with pytest.raises(ConfigError, match=message):
            with_evaluation(toy_config(encoding=encoding), value)
