import pathlib
import types

import pytest
import tensorflow as tf

from tests.trainers.devices.worker import SecondWorker
from tests.trainers.toy import toy_config
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.devices.workers import (
    check_same_data,
    check_same_flags,
    check_share,
    directory_of_worker,
    refuse_together,
    watch_workers,
)
from trainers.errors import ConfigError, WorkerLostError


def test_a_batch_is_shared_by_all_replicas_equally():
    check_share(2, toy_config(gradient_accumulation_steps=4))
    for size, parts, message in (
        (9, 1, r"9 examples equally: choose .* multiple of 2"),
        (8, 3, r"each in 3 parts: .*a multiple of 6"),
    ):
        changes = {"batch_size": size, "gradient_accumulation_steps": parts}
        with pytest.raises(ConfigError, match=message):
            check_share(2, toy_config(**changes))


def test_workers_need_the_same_flags_and_data():
    data = types.SimpleNamespace(data_digest="ab12")
    for check, what, message in (
        (check_same_flags, toy_config(), "with different flags: give all"),
        (check_same_data, data, "have different data: give all"),
    ):
        check(SecondWorker(), what)
        check(make_strategy("one_device"), what)
        with pytest.raises(ConfigError, match=message):
            check(SecondWorker(differs=True), what)


def test_the_first_worker_alone_writes_the_files(tmp_path, capsys):
    with directory_of_worker(make_strategy("one_device"), tmp_path) as path:
        assert path == tmp_path
    with directory_of_worker(SecondWorker(), tmp_path) as path:
        assert pathlib.Path(path).is_dir() and path != tmp_path
        print("unseen")
    assert not pathlib.Path(path).exists()
    assert "unseen" not in capsys.readouterr().out


def test_all_workers_end_where_one_cannot_start():
    refused = SecondWorker(agrees=True)
    message = "another worker cannot start: see"
    with pytest.raises(ConfigError, match=message), refuse_together(refused):
        pass
    for worker in (SecondWorker(), refused):
        with pytest.raises(ConfigError, match="own"), refuse_together(worker):
            raise ConfigError("own")


def test_a_lost_worker_is_told_from_other_failures():
    with (
        pytest.raises(WorkerLostError, match=r"^peer is gone$"),
        watch_workers(SecondWorker()),
    ):
        raise OSError("peer is gone\nmore")
    with pytest.raises(KeyError), watch_workers(SecondWorker()):
        raise KeyError("another failure")
    # A run of one worker loses none.
    alone = make_strategy("one_device")
    gone = tf.errors.UnavailableError(None, None, "peer is gone")
    assert alone.means_lost_worker(gone)
    # What a worker sees that notices the loss only when the other one is back.
    for words, lost in {
        "group 1 not found. This normally means the server has restarted": True,
        "RecvBuf expects a different device incarnation: 1 vs. 2": True,
        "Could not find variable kernel.": False,
    }.items():
        error = tf.errors.FailedPreconditionError(None, None, words)
        assert alone.means_lost_worker(error) == lost
    with pytest.raises(tf.errors.UnavailableError), watch_workers(alone):
        raise gone
