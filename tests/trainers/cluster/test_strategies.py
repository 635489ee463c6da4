import pytest
import tensorflow as tf

from tests.trainers.toy import toy_config
from trainers.cluster import strategies
from trainers.cluster.strategies import (
    check_share,
    describe,
    make_strategy,
    watch_workers,
)
from trainers.errors import ConfigError, WorkerLostError


@pytest.fixture(autouse=True)
def without_tf_config(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)


@pytest.fixture
def no_tpu_after():
    yield
    strategies._tpu.cache_clear()


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


def test_a_batch_that_replicas_cannot_share_is_refused():
    with pytest.raises(ConfigError, match="a multiple of 2"):
        check_share(2, toy_config(batch_size=9))
    config = toy_config(batch_size=8, gradient_accumulation_steps=3)
    with pytest.raises(ConfigError, match=r"in 3 parts.*a multiple of 6"):
        check_share(2, config)
    check_share(2, toy_config(gradient_accumulation_steps=4))


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
        assert make_strategy("one_device").num_replicas_in_sync == 1


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
        ({"compile": "false"}, "TPUs run compiled programs alone"),
    ],
)
def test_what_a_tpu_cannot_do(changes, message):
    with pytest.raises(ConfigError, match=message):
        toy_config(strategy="tpu", **changes)


def test_a_lost_worker_is_told_from_other_failures():
    with pytest.raises(WorkerLostError, match="gone"), watch_workers():
        raise tf.errors.UnavailableError(None, None, "peer is gone\nmore")
    alone = make_strategy("one_device")
    with pytest.raises(tf.errors.UnavailableError), watch_workers(alone):
        raise tf.errors.UnavailableError(None, None, "peer is gone")
