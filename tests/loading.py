"""Loads saved models in fresh processes.

What is registered, counted or set in the process that made a model must not
matter. Every file is therefore loaded in a fork of a process that has imported
Keras and computed nothing; twice, because the first time moves counters on.
"""

import concurrent.futures
import multiprocessing
import os

import keras
import numpy as np

# Forks say no more than a trainer, which starts by setting this.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])


def check(model, path, inputs, *, atol=1e-6):
    """Saves a model, and asserts that loaded ones compute the same.

    Random positions go on in a loaded model where they were saved.
    """
    model.save(path)
    expected = compute(model, inputs)
    inputs = keras.tree.map_structure(keras.ops.convert_to_numpy, inputs)
    with concurrent.futures.ProcessPoolExecutor(1, FORKS) as pool:
        for found in pool.submit(load_twice, path, inputs).result():
            for output, other in zip(expected, found, strict=True):
                np.testing.assert_allclose(other, output, atol=atol)


def load_twice(path, inputs):
    """What two models of a file compute."""
    # As a user does.
    import keras_lengen  # noqa: F401

    return [compute(keras.saving.load_model(path), inputs) for _ in range(2)]


def compute(model, inputs):
    """Computes the outputs of a model, a list of float32 arrays."""
    return [
        keras.ops.convert_to_numpy(output).astype("float32")
        for output in keras.tree.flatten(model(inputs))
    ]
