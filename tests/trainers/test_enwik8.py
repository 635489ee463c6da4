"""Bytes of text: losses by hand, every byte once, and whole runs."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.trainers.toy import draw, toy_config
from trainers.enwik8 import EXPERIMENT
from trainers.errors import ConfigError


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text"
    # 50 bytes for testing.
    path.write_bytes(np.random.default_rng(0).bytes(1000))
    return path


def config(text, **changes):
    flags = {"evaluation_examples": 0, "data_dir": str(text), **changes}
    return toy_config("enwik8", **flags)


def measure(problem, length, logits_of):
    """Metrics of logits that are a function of the targets."""
    windows = problem.evaluation_examples(length)
    batch = draw(problem, length, windows + 1, padded=length + 3)
    batch["used"] = tf.range(windows + 1) < windows
    sums = problem.sums(logits_of(batch["targets"]), batch)
    return problem.measure(keras.ops.convert_to_numpy(sums))


@pytest.fixture
def losses(text):
    """Losses of logits 1 for bytes below 128, and 0 for all others."""
    targets = np.frombuffer(text.read_bytes()[950:], np.uint8)
    return math.log(128 * math.e + 128) - (targets < 128)


def below_128(targets):
    low = tf.cast(tf.range(256) < 128, tf.float32)
    return tf.broadcast_to(low, (*targets.shape, 256))


def test_losses_by_hand(text, losses):
    problem = EXPERIMENT.make_problem(config(text))
    windows = [losses[start : start + 8].mean() for start in range(0, 50, 8)]
    found = measure(problem, 8, below_128)
    mean = losses.mean()
    assert found["nats_per_byte"] == pytest.approx(mean, rel=1e-6)
    assert found["bits_per_character"] == pytest.approx(mean / math.log(2))
    # The score of a window, whatever the length of the last one.
    assert found["loss"] == pytest.approx(8 * mean, rel=1e-6)
    half = 1.96 * np.std(windows) / math.sqrt(7)
    assert found["nats_per_byte_low"] == pytest.approx(mean - half, rel=1e-4)
    assert found["nats_per_byte_high"] == pytest.approx(mean + half, rel=1e-4)
    problem.measure = problem.measure_positions
    found = measure(problem, 8, below_128)
    assert found == pytest.approx({n: losses[n::8].mean() for n in range(8)})
    # 64 values at most, each of equally many positions.
    sums = np.concatenate([[0, 0, 1], np.arange(100), np.ones(100)])
    pairs = {n: n + 0.5 for n in range(0, 100, 2)}
    assert problem.measure_positions(sums) == pairs


def test_sliding_windows_measure_every_byte_once(text, losses):
    problem = EXPERIMENT.make_problem(config(text, stride=3))
    # The first 8 bytes, and 14 times the next 3.
    assert problem.evaluation_examples(8) == 15
    found = measure(problem, 8, below_128)
    assert found["nats_per_byte"] == pytest.approx(losses.mean(), rel=1e-6)


def test_all_lengths_read_the_same_bytes(text):
    some = config(text, evaluation_examples=1)
    problem = EXPERIMENT.make_problem(some)
    assert [problem.evaluation_examples(n) for n in problem.lengths] == [4, 1]


def test_no_text(text, tmp_path):
    for data, changes, message in (
        (tmp_path / "none", {}, r"neither a file nor a folder.*Or"),
        (tmp_path, {"dataset": "enwik8"}, "--dataset=python_source"),
        (text, {"train_length": "901"}, "900 tokens in split train, fewer"),
    ):
        with pytest.raises(ConfigError, match=message):
            EXPERIMENT.train(config(data, **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()
