"""What the tests of all layers ask of constructors."""

import json

import keras
import numpy as np


def through_json(config):
    return json.loads(json.dumps(config))


def assert_is_attribute(layer, name, value):
    """Asserts that an argument is kept as it was given, and rebuilt so."""
    rebuilt = type(layer).from_config(through_json(layer.get_config()))
    # Keras uses some attributes itself.
    name = type(layer).arguments()[name].name or name
    for attribute in (getattr(layer, name), getattr(rebuilt, name)):
        for module, kind in (
            (keras.initializers, "Initializer"),
            (keras.regularizers, "Regularizer"),
            (keras.constraints, "Constraint"),
        ):
            if isinstance(attribute, getattr(module, kind)):
                value = module.get(value)
        if isinstance(attribute, type):
            assert attribute is value
        elif hasattr(attribute, "get_config"):
            assert type(attribute) is type(value)
            assert attribute.get_config() == value.get_config()
        else:
            assert attribute == value


def differ(first, second):
    """Whether two nests of arrays differ in structure, shape or numbers."""
    first, second = keras.tree.flatten(first), keras.tree.flatten(second)
    return len(first) != len(second) or any(
        np.shape(a) != np.shape(b) or not np.array_equal(a, b)
        for a, b in zip(first, second, strict=True)
    )
