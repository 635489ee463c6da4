import pytest

from tests.trainers.toy import toy_config
from trainers.errors import ConfigError
from trainers.options.evaluation import with_evaluation

DRAWN = "RandomizedRoPE(ordered=False, evaluation='{}')"
EVEN = "RandomizedPositions(evaluation='even')"
AXIAL = "AxialEncoding(row=RoPE{0}, column=RoPE{0})"
ROWS = "GridPositions(width=3, row=RandomizedPositions(max_position=9{}))"
EVEN_ROWS = ROWS.format(", evaluation='even'")


def test_every_sampler_gets_the_value():
    for encoding, sampler, changed in (
        (DRAWN.format("random"), "", (DRAWN.format("even"), "")),
        ("ALiBi", "RandomizedPositions", ("ALiBi", EVEN)),
        (AXIAL.format("()"), ROWS.format(""), (AXIAL.format(""), EVEN_ROWS)),
    ):
        config = toy_config(encoding=encoding, sampler=sampler, model_dim=16)
        found = with_evaluation(config, "even")
        assert (found.encoding, found.sampler) == changed
        assert with_evaluation(config, "") is config


def test_mistakes():
    for encoding, value, message in (
        ("RoPE", "even", "RoPE draws none: remove it"),
        ("RandomizedRoPE", "zero", "evaluation"),
    ):
        with pytest.raises(ConfigError, match=message):
            with_evaluation(toy_config(encoding=encoding), value)
