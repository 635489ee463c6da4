"""Parts of a step of training on TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks import TASKS
from datasets.tasks.batches import assemble
from tests.trainers.toy import toy_config
from trainers.algorithmic import EXPERIMENT, TaskProblem
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.engine.training_step import find_bucket
from trainers.experiment import make_training_step


def test_bucket_of_a_length():
    found = [int(find_bucket(n, (4, 8, 12))) for n in (1, 4, 5, 8, 12)]
    assert found == [0, 0, 1, 1, 2]


def test_cut_shortens_what_has_tokens():
    task, problem = TASKS["reverse_string"], TaskProblem(toy_config())
    sample = task.sample((0, 1), 4, 5)
    wide = problem.cut(assemble(task, sample, 16), 12)
    for name, values in assemble(task, sample, 12).items():
        np.testing.assert_array_equal(wide[name], values)


@pytest.mark.product
def test_a_run_of_mixed_lengths_needs_few_programs():
    config = toy_config(
        train_length="1-8",
        test_lengths="9-12",
        buckets=2,
        evaluation_examples=4,
        compile="always",
    )
    strategy = make_strategy("one_device")
    model, optimizer, problem = EXPERIMENT.make_parts(config, strategy)
    step = make_training_step(config, model, optimizer, problem, strategy)
    step.run(step.iterate(0, 20), 0, 20)
    drawn = [int(step.find_bucket(tf.constant(at))) for at in range(20)]
    assert {*drawn} == {0, 1}
    # One for each padded length, whatever the lengths of the steps.
    assert step._gradients.experimental_get_tracing_count() == 2


def test_a_gradient_that_overflows_skips_the_step():
    strategy = make_strategy("one_device")
    config = toy_config(precision="mixed_float16", learning_rate=0.1)
    model, optimizer, problem = EXPERIMENT.make_parts(config, strategy)
    problem.loss = lambda outputs, batch: (
        tf.reduce_sum(outputs * batch["factor"]),
        tf.constant(1.0),
    )
    step = make_training_step(config, model, optimizer, problem, strategy)
    ids = tf.zeros((2, 6), tf.int32)
    batch = {"token_ids": ids, "lengths": tf.constant(6)}

    @tf.function
    def update(factor):
        scaled = {**batch, "factor": factor}
        number = tf.constant(0, tf.int64)
        strategy.distribution.run(step.update, args=(scaled, number))

    head = model.head.kernel
    before, scale = head.numpy(), optimizer.dynamic_scale.numpy()
    update(tf.constant(float("inf")))
    np.testing.assert_array_equal(head.numpy(), before)
    assert optimizer.dynamic_scale.numpy() == scale / 2
    update(tf.constant(1e-4))
    assert np.isfinite(head.numpy()).all() and (head.numpy() != before).any()
