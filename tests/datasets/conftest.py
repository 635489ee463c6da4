import pytest
import tensorflow as tf


@pytest.fixture(autouse=True)
def _one_generator(monkeypatch):
    """Without a name, TensorFlow has other random numbers on a TPU."""

    def named(function):
        def call(*args, alg="auto_select", **kwargs):
            if alg != "philox":
                raise AssertionError(f"alg={alg!r} in {function.__name__}")
            return function(*args, alg=alg, **kwargs)

        return call

    for name in ("fold_in", "split", "stateless_uniform"):
        monkeypatch.setattr(tf.random, name, named(getattr(tf.random, name)))
