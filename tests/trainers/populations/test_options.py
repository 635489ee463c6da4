import pytest

from trainers import population
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.populations.options import PRESETS, PopulationConfig


def test_mistakes_are_refused():
    for flags, message in (
        ({"seeds": "a"}, "--seeds takes integers from 0 "),
        ({"seeds": "0-5000"}, "--seeds takes at most 1000 seeds"),
        ({"learning_rates": "0.1,"}, "--learning_rates takes numbers from"),
        ({"task": "odd_first"}, "Did you mean odds_first"),
    ):
        with pytest.raises(ConfigError, match=message):
            resolve(PopulationConfig, PRESETS, flags)


def test_another_backend_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = "but Keras is set to tensorflow: set KERAS_BACKEND=jax"
    with pytest.raises(ConfigError, match=message):
        population.main(resolve(PopulationConfig, PRESETS, {}))
    assert not list(tmp_path.iterdir())
