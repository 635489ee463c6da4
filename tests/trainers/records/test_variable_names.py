import keras
import pytest

from trainers.errors import ConfigError
from trainers.records.variable_names import name_variables


def named(layers, optimizer=None):
    model = keras.Sequential([keras.Input((2,)), *layers])
    optimizer = optimizer or keras.optimizers.SGD(momentum=0.9)
    optimizer.build(model.trainable_variables)
    return model, optimizer, name_variables(model, optimizer)


def test_names_do_not_depend_on_what_was_made_before():
    Dense = keras.layers.Dense
    first, second = (
        named([Dense(3), Dense(4), keras.layers.LayerNormalization()])
        for _ in range(2)
    )
    assert first[0].weights[0].path != second[0].weights[0].path
    names = list(second[2])
    assert names == list(first[2])
    assert names[:5] == [
        "model/sequential/dense_0/kernel",
        "model/sequential/dense_0/bias",
        "model/sequential/dense_1/kernel",
        "model/sequential/dense_1/bias",
        "model/sequential/layer_normalization/gamma",
    ]


def test_the_scale_of_the_loss_has_a_name():
    inner = keras.optimizers.Adam()
    _, optimizer, names = named(
        [keras.layers.Dense(1)], keras.optimizers.LossScaleOptimizer(inner)
    )
    assert len(names) == 2 + len(optimizer.variables)
    assert "optimizer/loss_scale_optimizer/dynamic_scale" in names
    assert "optimizer/adam/sequential/dense/kernel/momentum" in names


class Twins(keras.layers.Layer):
    def build(self, input_shape):
        self.one = self.add_weight(name="same", shape=(2,))
        self.other = self.add_weight(name="same", shape=(2,))


def test_variables_of_one_path_are_refused():
    with pytest.raises(ConfigError, match="two variables have the path model"):
        named([Twins()])
