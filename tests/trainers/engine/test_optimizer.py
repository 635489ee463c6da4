import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.trainers.toy import toy_config
from trainers.devices.tensorflow_strategy import make_strategy
from trainers.engine.optimizer import Adam, clip_gradients
from trainers.errors import ConfigError
from trainers.experiment import make_optimizer

LEFT = 1 - np.arange(10) / 10
RISE = np.arange(1, 5) / 4


def make(**changes):
    """An optimizer of a small model, and the model's weights."""
    config = toy_config(learning_rate=0.5, **changes)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    return make_optimizer(config, model), model.trainable_variables


def find_rates(**changes):
    """Learning rates of 10 steps, which are all."""
    optimizer, _ = make(steps=10, **changes)
    for step in range(10):
        optimizer.iterations.assign(step)
        yield float(optimizer.learning_rate)


def test_schedules():
    for schedule, warmup, rates in (
        ("Polynomial(power=2.0, end=0.1)", 0, 0.1 + 0.4 * LEFT**2),
        ("Cosine(end=0.1)", 0, 0.3 - 0.2 * np.cos(np.pi * LEFT)),
        ("Polynomial", 4, 0.5 * np.append(RISE, 1 - np.arange(6) / 6)),
    ):
        found = find_rates(learning_rate_schedule=schedule, warmup_steps=warmup)
        np.testing.assert_allclose([*found], rates, rtol=1e-5)


def test_schedules_that_cannot_be():
    for changes, message in (
        ({"learning_rate_schedule": "Linear"}, "must be one of Constant"),
        ({"learning_rate_schedule": "Cosine(end=-1.0)"}, "at least 0"),
        ({"learning_rate_schedule": "Cosine(end=0.6)"}, "falls from the lear"),
        ({"warmup_steps": 10}, "--warmup_steps must be below --steps=10"),
    ):
        with pytest.raises(ConfigError, match=message):
            [*find_rates(**changes)]


def test_weight_decay_leaves_biases_alone():
    optimizer, (kernel, bias) = make(weight_decay=0.125)
    bias.assign([1.0, 1.0])
    before = kernel.numpy()
    optimizer.apply([tf.zeros((2, 2)), tf.zeros(2)])
    # A step of Adam without a gradient is none, and powers of two are exact.
    np.testing.assert_allclose(kernel.numpy(), before * (1 - 0.5 * 0.125))
    np.testing.assert_array_equal(bias.numpy(), [1.0, 1.0])


def test_gradients_are_not_summed_again():
    strategy = make_strategy("mirrored")
    with strategy.scope():
        weight = keras.Variable([1.0, 1.0])
        # A large epsilon shows the size of gradients, which Adam hides else.
        optimizer = Adam(0.1, epsilon=1.0)
        optimizer.build([weight])

    @tf.function
    def step():
        def on_replica():
            context = tf.distribute.get_replica_context()
            gradient = tf.identity(tf.constant([3.0, 5.0]))
            mean = context.all_reduce("MEAN", gradient)
            optimizer.apply([mean], [weight])

        strategy.distribution.run(on_replica)

    step()
    # Adam's first step, by hand.
    scaled = np.sqrt(1 - 0.999) * np.array([3.0, 5.0])
    expected = 1 - 0.1 * scaled / (scaled + 1)
    np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-6)


def test_gradients_are_clipped_by_their_global_norm():
    gradients = [np.array([3.0, 0.0], "float32"), np.array([[4.0]], "float32")]
    for clip_norm, ratio in ((2.5, 0.5), (7.0, 1.0)):
        clipped = clip_gradients(gradients, clip_norm)
        for found, given in zip(clipped, gradients, strict=True):
            np.testing.assert_allclose(found, ratio * given, rtol=1e-6)
