"""Bytes of text: losses by hand, every byte once, and whole runs."""

import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.trainers.toy import assert_same_weights
from trainers.enwik8 import EXPERIMENT
from trainers.errors import ConfigError
from trainers.options.fields import resolve

FLAGS = {
    "dataset": "files",
    "encoding": "RandomizedRoPE",
    "steps": 4,
    "steps_per_loop": 1,
    "checkpoint_every": 2,
    "num_layers": 1,
    "num_heads": 2,
    "model_dim": 8,
    "batch_size": 8,
    "train_length": "8",
    "test_lengths": "32",
    "evaluation_examples": 0,
    "max_position": 64,
    "strategy": "one_device",
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text"
    # 50 bytes for testing.
    path.write_bytes(np.random.default_rng(0).bytes(1000))
    return path


def config(text, **changes):
    given = {**FLAGS, "data_dir": str(text), **changes}
    return resolve(EXPERIMENT.config, EXPERIMENT.presets, given)


def measure(problem, length, logits_of):
    """Metrics of logits that are a function of the targets."""
    windows = problem.evaluation_examples(length)
    batch = problem.evaluation_batch(
        index=tf.constant(0),
        batch_size=windows + 1,
        length=tf.constant(length),
        padded_length=length + 3,
    )
    batch["used"] = tf.range(windows + 1) < windows
    sums = problem.sums(logits_of(batch["targets"]), batch)
    return problem.measure(keras.ops.convert_to_numpy(sums))


def test_a_uniform_model(text):
    problem = EXPERIMENT.make_problem(config(text))
    found = measure(problem, 8, lambda t: tf.zeros((*t.shape, 256)))
    assert found["nats_per_byte"] == pytest.approx(math.log(256), abs=1e-6)
    assert found["bits_per_character"] == pytest.approx(8, abs=2e-6)
    assert found["nats_per_byte_interval"] == pytest.approx(0, abs=1e-2)
    # 50 bytes in 7 windows.
    expected = math.log(256) * 50 / 7
    assert found["loss"] == pytest.approx(expected, rel=1e-6)


def test_losses_by_hand(text):
    problem = EXPERIMENT.make_problem(config(text))
    targets = np.frombuffer(text.read_bytes()[950:], np.uint8)
    # Byte 0 to 127 gets logit 1, every other byte gets 0.
    total = math.log(128 * math.e + 128)
    losses = total - (targets < 128)
    windows = [losses[start : start + 8].mean() for start in range(0, 50, 8)]
    low = tf.cast(tf.range(256) < 128, tf.float32)
    found = measure(problem, 8, lambda t: tf.broadcast_to(low, (*t.shape, 256)))
    assert found["nats_per_byte"] == pytest.approx(losses.mean(), rel=1e-6)
    deviation = np.std(windows) / math.sqrt(7)
    assert found["nats_per_byte_interval"] == pytest.approx(
        1.96 * deviation, rel=1e-3
    )


def test_all_lengths_read_the_same_bytes(text):
    some = config(text, evaluation_examples=1)
    problem = EXPERIMENT.make_problem(some)
    assert [problem.evaluation_examples(n) for n in problem.lengths] == [4, 1]


def test_no_text(tmp_path):
    with pytest.raises(ConfigError, match=r"neither a file nor a folder.*Or"):
        EXPERIMENT.train(config(tmp_path / "none"), tmp_path / "run")
    missing = config(tmp_path, dataset="enwik8")
    with pytest.raises(ConfigError, match="--dataset=python_source"):
        EXPERIMENT.train(missing, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_names_its_text_and_goes_on(text, tmp_path):
    results = EXPERIMENT.train(config(text), tmp_path / "whole")
    saved = json.loads((tmp_path / "whole" / "results.json").read_text())
    assert saved == results
    assert results["config"]["dataset"] == "files"
    assert results["score_metric"] == "nats_per_byte"
    assert not results["higher_is_better"]
    assert set(results["final"]["loss_by_length"]) == {"8", "32"}
    EXPERIMENT.train(config(text, steps=2), tmp_path / "parts")
    longer = EXPERIMENT.train(config(text), tmp_path / "parts")
    assert longer["final"] == results["final"]
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")
