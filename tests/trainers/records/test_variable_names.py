import keras
import pytest

from trainers.errors import ConfigError
from trainers.records.variable_names import name_variables


def named(layers):
    model = keras.Sequential([keras.Input((2,)), *layers])
    optimizer = keras.optimizers.SGD(momentum=0.9, name="sgd")
    optimizer.build(model.trainable_variables)
    return model, optimizer, name_variables(model, optimizer)


def test_names_are_unique_and_do_not_depend_on_what_was_made_before():
    Dense = keras.layers.Dense
    first, second = (named([Dense(2) for _ in range(12)]) for _ in range(2))
    assert first[0].weights[0].path != second[0].weights[0].path
    names = list(second[2])
    assert names == list(first[2])
    assert names[1] == "model/sequential/dense_0/bias"
    # The tenth and later ones keep their order.
    assert names[20] == "model/sequential/dense_10/kernel"
    assert list(second[2].values())[:24] == second[0].weights

    # Layers with names of their own keep them.
    model, optimizer, names = named([Dense(3, name="a"), Dense(3, name="a_b")])
    assert [variable.path for variable in names.values()] == [
        variable.path for variable in (*model.weights, *optimizer.variables)
    ]
    assert "optimizer/sgd/sequential/a_b/kernel/momentum" in names


class Twins(keras.layers.Layer):
    def build(self, input_shape):
        self.one = self.add_weight(name="same", shape=(2,))
        self.other = self.add_weight(name="same", shape=(2,))


def test_variables_of_one_path_are_refused():
    with pytest.raises(ConfigError, match="two variables have the path model"):
        named([Twins()])
