import numpy as np
import pytest
import tensorflow as tf

from keras_lengen.models import TransformerEncoder
from tests.trainers.toy import toy_config
from trainers.algorithmic import TaskProblem
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.engine import evaluation_sizes
from trainers.engine.evaluation_sizes import split_examples
from trainers.experiment import make_evaluation


class Oracle(TransformerEncoder):
    """Doubles a string; the last output is wrong where the first bit is 1."""

    def call(self, inputs, training=None):
        token_ids, total = inputs["token_ids"], inputs["lengths"]
        length = total // 3
        places = tf.range(tf.shape(token_ids)[1]) % length
        answers = tf.gather(token_ids, places, axis=1)
        last = tf.range(tf.shape(token_ids)[1]) == total - 1
        wrong = last & (token_ids[:, :1] == 1)
        return 20.0 * tf.one_hot(tf.where(wrong, 1 - answers, answers), 2)


def make(strategy="one_device", examples=40):
    strategy = make_strategy(strategy)
    sizes = {"num_layers": 1, "num_heads": 1, "model_dim": 2}
    with strategy.scope():
        model = Oracle(vocabulary_size=3, output_size=2, **sizes)
    config = toy_config(
        task="duplicate_string",
        train_length="3",
        test_lengths="5,6",
        evaluation_examples=examples,
        max_position=256,
        seed=1,
    )
    return make_evaluation(config, model, TaskProblem(config), strategy)


@pytest.mark.parametrize(
    "strategy",
    ["one_device", pytest.param("mirrored", marks=pytest.mark.product)],
)
def test_metrics_of_known_errors(strategy):
    evaluation, progress = make(strategy, examples=200), []
    results = evaluation(lambda *done: progress.append(done))
    assert progress == [(3, 1), (5, 1), (6, 1)]
    for length in (3, 5, 6):
        share = 1 - results["exact_match"][length]
        # The first bit is 1 in half of the examples: 4 sigma.
        assert abs(share - 0.5) < 0.15
        accuracy = 1 - share / (2 * length)
        assert results["accuracy"][length] == pytest.approx(accuracy)
        loss = 20 * share / (2 * length)
        assert results["loss"][length] == pytest.approx(loss, rel=1e-5)
    assert evaluation() == results


def test_small_batches_count_every_example_once(monkeypatch):
    assert split_examples(41, 18, 1) == (1, 41)
    monkeypatch.setattr(evaluation_sizes, "PAIRS", 20 * 9 * 9)
    parts = make(examples=41)
    for padded in (9, 18):
        batches, share = split_examples(41, padded, 1)
        used = [
            parts.draw(padded // 3, index, padded, share, 41)["used"]
            for index in range(batches)
        ]
        assert np.concatenate(used).sum() == 41


def test_batches_fit_and_none_is_empty():
    rows = ((500, 41, 1), (50_000, 506, 4), (50_000, 2025, 32), (7, 2025, 4))
    for examples, tokens, replicas in rows:
        batches, share = split_examples(examples, tokens, replicas)
        at_a_time = share * replicas
        assert at_a_time * tokens**2 <= evaluation_sizes.PAIRS or share == 1
        assert (batches - 1) * at_a_time < examples <= batches * at_a_time
