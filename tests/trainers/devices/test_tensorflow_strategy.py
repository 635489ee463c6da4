import pytest
import tensorflow as tf

from tests.trainers.toy import toy_config
from trainers.devices import tensorflow_strategy
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.errors import ConfigError


@pytest.fixture(autouse=True)
def without_tf_config(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)


@pytest.fixture
def no_tpu_after():
    yield
    tensorflow_strategy._make_tpu.cache_clear()


def test_auto_is_one_device_without_several_gpus():
    strategy = make_strategy("auto")
    assert strategy.num_replicas == 1
    assert strategy.is_chief and not strategy.several_workers
    assert strategy.from_chief({"a": 3}) == {"a": 3}
    assert strategy.on_any_worker(True) and not strategy.on_any_worker(False)


def test_mirrored_takes_the_logical_cpus():
    assert make_strategy("mirrored").num_replicas == 2


@pytest.mark.parametrize("name", ["mirrored", "auto"])
def test_replicas_are_of_one_strategy_however_asked_for(monkeypatch, name):
    cpus = tf.config.list_logical_devices("CPU")
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: cpus)
    assert make_strategy(name, "local") is make_strategy("mirrored")


def test_mirrored_needs_two_devices(monkeypatch):
    one = tf.config.list_logical_devices("CPU")[:1]
    monkeypatch.setattr(
        tf.config,
        "list_logical_devices",
        lambda kind: one if kind == "CPU" else [],
    )
    with pytest.raises(ConfigError, match="at least two devices"):
        make_strategy("mirrored")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        '{"cluster": {"worker": ["a:1", "b:2"]}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", '
        '"index": 1}}',
        '{"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": {"type": '
        '"worker", "index": 0}}',
        '{"cluster": {"worker": "a:1"}, "task": {"type": "worker", '
        '"index": 0}}',
    ],
)
def test_multi_worker_says_what_tf_config_must_be(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ConfigError, match="needs the environment variable"):
        make_strategy("multi_worker")


def test_auto_is_multi_worker_where_workers_are_listed(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "not json")
    with pytest.raises(ConfigError, match="--strategy=multi_worker"):
        make_strategy("auto")


def test_workers_that_would_train_alone_are_told(monkeypatch):
    workers = '{"cluster": {"worker": ["a:1", "b:2"]}}'
    monkeypatch.setenv("TF_CONFIG", workers)
    with pytest.raises(ConfigError, match="TF_CONFIG lists 2 workers"):
        make_strategy("one_device")
    for alone in ('["a:1"]', '"a:1"'):
        workers = f'{{"cluster": {{"worker": {alone}}}}}'
        monkeypatch.setenv("TF_CONFIG", workers)
        assert make_strategy("one_device").num_replicas == 1


def test_tpu_needs_the_wheel_for_tpus():
    with pytest.raises(ConfigError, match=r"pip install -e '.\[tpu\]'"):
        make_strategy("tpu")


def test_tpu_needs_a_tpu(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.20.0")
    monkeypatch.setattr("glob.glob", lambda pattern: [])
    with pytest.raises(ConfigError, match="found no TPU"):
        make_strategy("tpu")


def test_tpu_that_does_not_answer(monkeypatch):
    def unknown(address):
        raise ValueError(f"{address} is unknown\nmore")

    resolvers = tf.distribute.cluster_resolver
    monkeypatch.setattr(resolvers, "TPUClusterResolver", unknown)
    with pytest.raises(ConfigError, match="--tpu=mine cannot be reached: mine"):
        make_strategy("tpu", "mine")


def test_tpu_at_an_address_where_nobody_is():
    with pytest.raises(ConfigError, match=r"cannot be reached: .*refused"):
        make_strategy("tpu", "grpc://127.0.0.1:9")


def test_tpu_is_initialized_before_it_is_used(monkeypatch, no_tpu_after):
    calls = []
    resolvers = tf.distribute.cluster_resolver
    monkeypatch.setattr(
        resolvers, "TPUClusterResolver", lambda address: f"at {address}"
    )
    monkeypatch.setattr(
        tf.config,
        "experimental_connect_to_cluster",
        lambda resolver: calls.append(f"connect {resolver}"),
    )
    monkeypatch.setattr(
        tf.tpu.experimental,
        "initialize_tpu_system",
        lambda resolver: calls.append(f"initialize {resolver}"),
    )
    monkeypatch.setattr(
        tf.distribute,
        "TPUStrategy",
        lambda resolver: calls.append(f"strategy {resolver}"),
    )
    monkeypatch.setattr(
        tensorflow_strategy, "TensorFlowStrategy", lambda distribution: None
    )
    make_strategy("tpu", "mine")
    assert calls == [
        "connect at mine",
        "initialize at mine",
        "strategy at mine",
    ]


def test_a_bucket_is_no_directory():
    with pytest.raises(ConfigError, match="mount the bucket"):
        toy_config(workdir="gs://bucket/run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"precision": "mixed_float16"}, "TPUs compute in bfloat16"),
        ({"compile": "false"}, "TPUs run compiled programs only"),
    ],
)
def test_what_a_tpu_cannot_do(changes, message):
    with pytest.raises(ConfigError, match=message):
        toy_config(strategy="tpu", **changes)
