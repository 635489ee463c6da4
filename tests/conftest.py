"""Two logical CPU devices, so that any test may run two replicas; one seed."""

import importlib.util
import os
import pathlib
from unittest import mock

# Programs for CPUs are compiled to be compared, not to be fast. Set before an
# import of JAX, for this process and for those that tests start.
if not (
    pathlib.Path("/dev/nvidiactl").exists()
    or importlib.util.find_spec("libtpu")
):
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    os.environ.setdefault(
        "XLA_FLAGS",
        "--xla_backend_optimization_level=0"
        " --xla_llvm_disable_expensive_passes=true",
    )

import hypothesis
import keras
import pytest

from tests import loading as loading_module

# The same few examples in every run; a failure prints how to repeat it.
hypothesis.settings.register_profile(
    "few",
    max_examples=25,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile("few")

# PyTorch beside TensorFlow ends some processes.
if keras.backend.backend() != "torch":
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )


@pytest.fixture(autouse=True)
def _one_seed():
    if keras.backend.backend() == "torch":
        keras.utils.set_random_seed(0)
        return
    # TensorFlow has a seed of its own, which nothing here reads. To set it
    # makes TensorFlow forget its kernels.
    with mock.patch.object(tf.random, "set_seed"):
        keras.utils.set_random_seed(0)


@pytest.fixture
def loading():
    """The module that checks saved models."""
    return loading_module
