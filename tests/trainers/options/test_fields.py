import pytest

from tests.trainers.toy import toy_config
from trainers.algorithmic import EXPERIMENT
from trainers.engine.evaluation_sizes import PROGRAMS
from trainers.errors import ConfigError
from trainers.experiment import find_padded_lengths
from trainers.options.fields import describe_changes, resolve


def test_values_that_cannot_work():
    for changes, message in (
        ({"task": "mqar(pairs=3)"}, "the name, mqar, without arguments"),
        ({"strategy": "cpu"}, "--strategy cannot be .*It must be one of"),
        ({"curriculum": "Fixed(length=3)"}, r"no argument 'length'\. It takes"),
        ({"tpu": "x"}, "--tpu has no effect without --strategy=tpu: remove it"),
        ({"preset": "large"}, "--preset cannot be .*one of small, paper"),
    ):
        with pytest.raises(ConfigError, match=message):
            toy_config(**changes)


def test_the_paper_preset_is_the_published_protocol():
    # What is given wins over the preset.
    given = {"preset": "paper", "seed": 7, "task": "reverse_string"}
    config = resolve(EXPERIMENT.config, EXPERIMENT.presets, given)
    assert config.trained_lengths == tuple(range(1, 41))
    assert config.evaluated_lengths == tuple(range(1, 501))
    published = {
        **{"num_layers": 5, "num_heads": 8, "model_dim": 64},
        **{"steps": 2_000_000, "batch_size": 128, "learning_rate": 3e-4},
        **{"evaluation_examples": 500, "max_position": 2048, "clip_norm": 1.0},
        "seed": 7,
    }
    assert published.items() <= vars(config).items()
    problem = EXPERIMENT.make_problem(config)
    evaluated = find_padded_lengths(config, problem, "evaluate")
    assert len(evaluated) == PROGRAMS and evaluated[-1] == 2 * 500
    assert len(find_padded_lengths(config, problem, "train")) == 4


def test_what_differs_from_the_preset():
    given = {
        "preset": "paper",
        "encoding": "RoPE(rotary_fraction=0.5)",
        # As in the preset.
        "batch_size": 128,
        "seed": 1,
    }
    config = resolve(EXPERIMENT.config, EXPERIMENT.presets, given)
    expected = "--preset=paper --encoding='RoPE(rotary_fraction=0.5)' --seed=1"
    assert describe_changes(config, EXPERIMENT.presets) == expected
