"""Two logical CPU devices, so that any test may run two replicas; one seed."""

import keras
import pytest
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)


@pytest.fixture(autouse=True)
def _one_seed():
    keras.utils.set_random_seed(0)
