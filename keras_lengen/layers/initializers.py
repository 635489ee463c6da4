"""Initializers of kernels, of which each layer needs its own copy."""

from typing import Any

import keras


def copy_initializer(initializer: Any) -> Any:
    """Copies an initializer; other values are returned as they are.

    One initializer would give all layers the same initial values.
    """
    if isinstance(initializer, keras.initializers.Initializer):
        return initializer.clone()
    return initializer


def kernel_initializer(given: Any) -> Any:
    """Makes a copy of an initializer; `None` gives the default.

    The default is `make_fan_in_normal`.
    """
    return make_fan_in_normal() if given is None else copy_initializer(given)


def make_fan_in_normal() -> keras.initializers.Initializer:
    """Makes the default initializer of kernels.

    It is a truncated normal distribution with standard deviation
    `1 / sqrt(inputs)` before truncation.
    """
    # Keras scales the standard deviation after truncation at two sigma. Haiku,
    # and with it the code of Ruoss et al., 2023, scales it before truncation.
    return keras.initializers.VarianceScaling(
        scale=0.87962566103423978**2,
        mode="fan_in",
        distribution="truncated_normal",
    )
