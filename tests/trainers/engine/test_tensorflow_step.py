"""Parts of a step of training on TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from datasets.tasks import TASKS
from datasets.tasks.batches import assemble
from keras_lengen.layers import ENCODINGS
from tests.trainers.engine.small import small_model
from tests.trainers.toy import toy_config
from trainers.algorithmic import EXPERIMENT, TaskProblem
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.engine.draws import set_seeds
from trainers.engine.tensorflow_step import TensorFlowTrainingStep, take_part
from trainers.engine.training_step import find_bucket
from trainers.experiment import (
    make_evaluation,
    make_optimizer,
    make_training_step,
)

TASK = TASKS["reverse_string"]
PROBLEM = TaskProblem(toy_config())


def test_a_part_is_a_slice_of_what_has_examples():
    ids = tf.reshape(tf.range(12), (6, 2))
    batch = {"token_ids": ids, "lengths": tf.constant(2)}
    part = take_part(batch, tf.constant(1), 3)
    assert part["token_ids"].numpy().tolist() == [[4, 5], [6, 7]]
    assert part["lengths"] == 2


def test_bucket_of_a_length():
    found = [int(find_bucket(n, (4, 8, 12))) for n in (1, 4, 5, 8, 12)]
    assert found == [0, 0, 1, 1, 2]


def test_cut_shortens_what_has_tokens():
    sample = TASK.sample((0, 1), 4, 5)
    wide = PROBLEM.cut(assemble(TASK, sample, 16), 12)
    for name, values in assemble(TASK, sample, 12).items():
        np.testing.assert_array_equal(wide[name], values)


@pytest.mark.product
def test_a_run_of_mixed_lengths_needs_few_programs():
    config = toy_config(
        train_length="1-20",
        test_lengths="21-40",
        buckets=2,
        max_position=128,
        evaluation_examples=4,
        compile="true",
    )
    strategy = make_strategy("one_device")
    model, optimizer, problem = EXPERIMENT.make_parts(config, strategy)
    step = make_training_step(config, model, optimizer, problem, strategy)
    step.run(step.iterate(0, 20), 0, 20)
    drawn = [int(step.find_bucket(tf.constant(at))) for at in range(20)]
    assert {*drawn} == {0, 1}
    # One for each padded length, whatever the lengths of the steps.
    assert step._gradients.experimental_get_tracing_count() == 2
    evaluation = make_evaluation(config, model, problem, strategy)
    evaluation.buckets = evaluation.buckets[-2:]
    assert len(evaluation()["accuracy"]) == 40
    assert evaluation.step.traces == 2


def test_a_gradient_that_overflows_skips_the_step():
    strategy = make_strategy("one_device")
    config = toy_config(precision="mixed_float16", learning_rate=0.1)
    with strategy.scope():
        model = small_model()
        optimizer = make_optimizer(config, model)
    problem = TaskProblem(config)
    problem.loss = lambda outputs, batch: (
        tf.reduce_sum(outputs * batch["factor"]),
        tf.constant(1.0),
    )
    step = TensorFlowTrainingStep(
        model=model,
        optimizer=optimizer,
        problem=problem,
        strategy=strategy,
        buckets=(6,),
        seed=0,
        clip_norm=1.0,
        compiled=False,
    )
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
    update(tf.constant(1.0))
    assert np.isfinite(head.numpy()).all() and (head.numpy() != before).any()


def gradients_of(model, batch):
    tf.distribute.OneDeviceStrategy("CPU:0").run(lambda: set_seeds(model, 5))
    with tf.GradientTape() as tape:
        logits = model(PROBLEM.inputs(batch), training=True)
        total, count = PROBLEM.loss(logits, batch)
        loss = total / count
    gradients = tape.gradient(loss, model.trainable_variables)
    return loss, [tf.convert_to_tensor(part) for part in gradients]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("WarpedRoPE", {"train_length": 10}),
        ("FIRE", {}),
        ("RandomizedALiBi", {"resample": "example", "max_position": 64}),
    ],
)
def test_padding_changes_nothing(name, arguments):
    model = small_model(ENCODINGS[name](**arguments))
    sample = TASK.sample((0, 1), 4, 5)
    exact = gradients_of(model, assemble(TASK, sample, 10))
    padded = gradients_of(model, assemble(TASK, sample, 16))
    np.testing.assert_allclose(padded[0], exact[0], rtol=1e-5)
    for one, other in zip(padded[1], exact[1], strict=True):
        # Sums of other lengths round differently: 1.1e-6 was measured.
        np.testing.assert_allclose(one, other, atol=1e-5)
