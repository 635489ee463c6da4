import pytest
import tensorflow as tf

from tests.trainers.toy import toy_config
from trainers.config import ConfigError
from trainers.strategies import describe, make_strategy


def test_auto_is_one_device_without_several_gpus():
    strategy = make_strategy("auto")
    assert strategy.num_replicas_in_sync == 1
    config = toy_config(gradient_accumulation_steps=2)
    assert describe(strategy, config).startswith("1 replica(s), here ")
    assert "global batch 8, 8 per replica in 2 parts" in describe(
        strategy, config
    )


def test_mirrored_takes_the_logical_cpus():
    assert make_strategy("mirrored").num_replicas_in_sync == 2


def test_mirrored_needs_two_devices(monkeypatch):
    one = tf.config.list_logical_devices("CPU")[:1]
    monkeypatch.setattr(
        tf.config,
        "list_logical_devices",
        lambda kind: one if kind == "CPU" else [],
    )
    make_strategy.cache_clear()
    with pytest.raises(ConfigError, match="at least two devices"):
        make_strategy("mirrored")
