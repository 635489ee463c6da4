import pathlib
import types

import numpy as np
import pytest
import tensorflow as tf

from tests.trainers.toy import toy_config
from trainers.devices.strategy import Strategy
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.devices.workers import (
    check_same_data,
    check_same_flags,
    check_share,
    describe,
    directory_of_worker,
    watch_workers,
    workers_agree,
)
from trainers.errors import ConfigError, WorkerLostError


class SecondWorker(Strategy):
    """The second of two workers, of which the first has other arrays."""

    num_replicas = 2
    devices = ("cpu:0",)
    several_workers = True
    is_chief = False

    def __init__(self, differs=False):
        self.differs = differs

    def scope(self):
        raise NotImplementedError

    def from_chief(self, values):
        return np.asarray(values) + self.differs

    def on_any_worker(self, flag):
        return bool(flag)

    def means_lost_worker(self, error):
        return isinstance(error, OSError)


def test_a_run_is_described_in_one_line():
    config = toy_config(gradient_accumulation_steps=2)
    line = describe(make_strategy("one_device"), config)
    assert line.startswith("1 replica(s), here ")
    assert "global batch 8, 8 per replica in 2 parts" in line


def test_a_batch_that_replicas_cannot_share_is_refused():
    with pytest.raises(ConfigError, match="a multiple of 2"):
        check_share(2, toy_config(batch_size=9))
    config = toy_config(batch_size=8, gradient_accumulation_steps=3)
    with pytest.raises(ConfigError, match=r"in 3 parts.*a multiple of 6"):
        check_share(2, config)
    check_share(2, toy_config(gradient_accumulation_steps=4))


def test_workers_compare_what_they_have():
    assert workers_agree(SecondWorker(), b"same")
    assert not workers_agree(SecondWorker(differs=True), b"same")
    assert workers_agree(make_strategy("one_device"), b"alone")


def test_workers_need_the_same_flags():
    check_same_flags(SecondWorker(), toy_config())
    with pytest.raises(ConfigError, match="with different flags"):
        check_same_flags(SecondWorker(differs=True), toy_config())


def test_workers_need_the_same_data():
    problem = types.SimpleNamespace(data_digest="ab12")
    check_same_data(SecondWorker(), problem)
    with pytest.raises(ConfigError, match=r"have different data: give all"):
        check_same_data(SecondWorker(differs=True), problem)


def test_the_first_worker_alone_writes_the_files(tmp_path, capsys):
    with directory_of_worker(make_strategy("one_device"), tmp_path) as path:
        assert path == tmp_path
    with directory_of_worker(SecondWorker(), tmp_path) as path:
        assert pathlib.Path(path).is_dir() and path != tmp_path
        print("unseen")
    assert not pathlib.Path(path).exists()
    assert "unseen" not in capsys.readouterr().out


def test_a_lost_worker_is_told_from_other_failures():
    with (
        pytest.raises(WorkerLostError, match=r"^peer is gone$"),
        watch_workers(SecondWorker()),
    ):
        raise OSError("peer is gone\nmore")
    with pytest.raises(KeyError), watch_workers(SecondWorker()):
        raise KeyError("another failure")


def test_a_run_of_one_worker_loses_none():
    alone = make_strategy("one_device")
    gone = tf.errors.UnavailableError(None, None, "peer is gone")
    assert alone.means_lost_worker(gone)
    with pytest.raises(tf.errors.UnavailableError), watch_workers(alone):
        raise gone
