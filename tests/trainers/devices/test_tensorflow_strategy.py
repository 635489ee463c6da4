import json

import pytest
import tensorflow as tf

from trainers.devices.tensorflow_strategy import make_strategy
from trainers.errors import ConfigError

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


def list_one_cpu(monkeypatch):
    one = tf.config.list_logical_devices("CPU")[:1]
    devices = {"CPU": one, "GPU": []}
    monkeypatch.setattr(tf.config, "list_logical_devices", devices.get)


def have_wheel_for_tpus(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.20.0")
    monkeypatch.setattr("glob.glob", lambda pattern: [])


def know_no_tpu(monkeypatch):
    def unknown(address):
        raise ValueError(f"{address} is unknown\nmore")

    resolvers = tf.distribute.cluster_resolver
    monkeypatch.setattr(resolvers, "TPUClusterResolver", unknown)


NOBODY = "grpc://127.0.0.1:9"


@pytest.mark.parametrize(
    ("name", "tpu", "prepare", "message"),
    [
        (
            "mirrored",
            "local",
            list_one_cpu,
            "at least two devices",
        ),
        ("tpu", "local", lambda _: None, r"pip install -e '.\[tpu\]'"),
        ("tpu", "local", have_wheel_for_tpus, "found no TPU"),
        (
            "tpu",
            "mine",
            know_no_tpu,
            "tpu=mine cannot be reached: mine",
        ),
        ("tpu", NOBODY, lambda _: None, "cannot be reached: .*refused"),
    ],
)
def test_devices_that_are_not_there(monkeypatch, name, tpu, prepare, message):
    prepare(monkeypatch)
    with pytest.raises(ConfigError, match=message):
        make_strategy(name, tpu)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        json.dumps(TWO),
        json.dumps({**TWO, "task": {"type": "worker", "index": 2}}),
        json.dumps({**TWO, "task": {"type": "ps", "index": 0}}),
        json.dumps(
            {"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": FIRST}
        ),
        json.dumps({"cluster": {"worker": "a:1"}, "task": FIRST}),
    ],
)
def test_multi_worker_says_what_tf_config_must_be(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    # Where workers are listed, "auto" means them.
    for name in ("multi_worker", "auto") if text else ("multi_worker",):
        with pytest.raises(ConfigError, match="multi_worker needs the envir"):
            make_strategy(name)


def test_a_worker_that_cannot_have_its_address(monkeypatch):
    cluster = {"worker": ["127.0.0.1:x", "127.0.0.1:9"]}
    text = json.dumps({"cluster": cluster, "task": FIRST})
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ConfigError, match=r"cannot be reached at 127.0.0.1:x"):
        make_strategy("multi_worker")
