"""Loads saved models in fresh processes.

What is registered, counted or set in the process that made a model must not
matter. Every file is therefore loaded in a fork of a process that has imported
Keras and computed nothing; twice, because the first time moves counters on.
"""

import os
import pickle
import subprocess
import sys
import traceback

import keras
import numpy as np

from tests.checkout import ROOT


class LoadingProcess:
    """The process that forks; a context manager, which ends it."""

    def __enter__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.loading"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        return self

    def __exit__(self, *_):
        self._process.communicate()

    def load(self, path, inputs):
        """Loads a model twice in a new process.

        Args:
            path: Path of the `.keras` file.
            inputs: Arrays in a structure that the model takes.

        Returns:
            List of what the two models compute, as of `compute`.
        """
        inputs = keras.tree.map_structure(keras.ops.convert_to_numpy, inputs)
        pickle.dump((str(path), inputs), self._process.stdin)
        self._process.stdin.flush()
        found = pickle.load(self._process.stdout)
        assert not isinstance(found, str), found
        return found

    def check(self, model, path, inputs, *, atol=1e-6):
        """Saves a model, and asserts that loaded ones compute the same.

        Random positions go on in a loaded model where they were saved.
        """
        model.save(path)
        expected = compute(model, inputs)
        for found in self.load(path, inputs):
            for output, other in zip(expected, found, strict=True):
                np.testing.assert_allclose(other, output, atol=atol)


def compute(model, inputs):
    """Computes the outputs of a model, a list of float32 arrays."""
    return [
        keras.ops.convert_to_numpy(output).astype("float32")
        for output in keras.tree.flatten(model(inputs))
    ]


def serve():
    """Answers the requests on standard input, each in a fork."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            path, inputs = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        process = os.fork()
        if not process:
            try:
                # As a user does.
                import keras_lengen  # noqa: F401

                found = [
                    compute(keras.saving.load_model(path), inputs)
                    for _ in range(2)
                ]
            except BaseException:
                found = traceback.format_exc()
            pickle.dump(found, replies)
            replies.flush()
            os._exit(0)
        _, status = os.waitpid(process, 0)
        if status:
            pickle.dump(f"loading {path} ended with {status}", replies)
            replies.flush()


if __name__ == "__main__":
    serve()
