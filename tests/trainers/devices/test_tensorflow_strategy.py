import json
from unittest import mock

import pytest
import tensorflow as tf

from tests.trainers.toy import toy_config
from trainers.devices import tensorflow_strategy
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.errors import ConfigError

ONE = {"worker": ["a:1"]}
TWO = {"cluster": {"worker": ["a:1", "b:2"]}}
FIRST = {"type": "worker", "index": 0}


@pytest.fixture(autouse=True)
def without_tf_config(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)


def test_auto_is_one_device_without_several_gpus():
    strategy = make_strategy("auto")
    assert strategy.num_replicas == 1
    assert strategy.is_chief and not strategy.several_workers
    assert strategy.from_chief({"a": 3}) == {"a": 3}
    assert strategy.on_any_worker(True) and not strategy.on_any_worker(False)


@pytest.mark.parametrize("name", ["mirrored", "auto"])
def test_replicas_are_of_one_strategy_however_asked_for(monkeypatch, name):
    strategy = make_strategy("mirrored")
    assert strategy.num_replicas == 2
    cpus = tf.config.list_logical_devices("CPU")
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: cpus)
    assert make_strategy(name, "local") is strategy


def test_devices_that_are_not_there(monkeypatch):
    with pytest.raises(ConfigError, match=r"pip install -e '.\[tpu\]'"):
        make_strategy("tpu", "local")
    unknown = mock.Mock(side_effect=ValueError("it is unknown\nmore"))
    resolvers = tf.distribute.cluster_resolver
    monkeypatch.setattr(resolvers, "TPUClusterResolver", unknown)
    message = r"tpu=mine cannot be reached: it is unknown\. Expected local"
    with pytest.raises(ConfigError, match=message):
        make_strategy("tpu", "mine")
    devices = {"CPU": tf.config.list_logical_devices("CPU")[:1], "GPU": []}
    monkeypatch.setattr(tf.config, "list_logical_devices", devices.get)
    with pytest.raises(ConfigError, match="at least two devices"):
        make_strategy("mirrored")


def test_multi_worker_says_what_tf_config_must_be(monkeypatch):
    message = "multi_worker needs the envir"
    for text in (
        "not json",
        json.dumps(TWO),
        json.dumps({**TWO, "task": {"type": "worker", "index": 2}}),
        json.dumps({"cluster": {**ONE, "ps": ["b:1"]}, "task": FIRST}),
        json.dumps({"cluster": {"worker": "a:1"}, "task": FIRST}),
    ):
        monkeypatch.setenv("TF_CONFIG", text)
        # Where workers are listed, "auto" means them.
        for name in ("multi_worker", "auto"):
            with pytest.raises(ConfigError, match=message):
                make_strategy(name)


def test_a_worker_that_cannot_have_its_address(monkeypatch):
    cluster = {"worker": ["127.0.0.1:x", "127.0.0.1:9"]}
    text = json.dumps({"cluster": cluster, "task": FIRST})
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ConfigError, match=r"cannot be reached at 127.0.0.1:x"):
        make_strategy("multi_worker")


def test_workers_that_would_train_alone_are_told(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps(TWO))
    with pytest.raises(ConfigError, match="TF_CONFIG lists 2 workers"):
        make_strategy("one_device")
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": ONE}))
    assert make_strategy("one_device").num_replicas == 1


def test_tpu_is_initialized_before_it_is_used(monkeypatch):
    calls = []

    def note(name):
        return lambda resolver: calls.append(f"{name} {resolver}")

    resolvers = tf.distribute.cluster_resolver
    for owner, name, act in (
        (resolvers, "TPUClusterResolver", "at {}".format),
        (tf.config, "experimental_connect_to_cluster", note("connect")),
        (tf.tpu.experimental, "initialize_tpu_system", note("initialize")),
        (tf.distribute, "TPUStrategy", note("strategy")),
        (tensorflow_strategy, "TensorFlowStrategy", lambda _: None),
    ):
        monkeypatch.setattr(owner, name, act)
    make_strategy("tpu", "mine")
    tensorflow_strategy._make_tpu.cache_clear()
    steps = ("connect", "initialize", "strategy")
    assert calls == [f"{step} at mine" for step in steps]


def test_what_a_tpu_and_a_bucket_cannot_do():
    for changes, message in (
        ({"workdir": "gs://bucket/run"}, "mount the bucket"),
        ({"compile": "never"}, "TPUs can only run compiled programs"),
    ):
        with pytest.raises(ConfigError, match=message):
            toy_config(**{"strategy": "tpu", **changes})
