"""Whether a program should gather numbers, which takes TPUs very long."""

import contextlib
from collections.abc import Iterator

import keras

_described: list[str] = []


@contextlib.contextmanager
def described_tpu() -> Iterator[None]:
    """Traces programs of TensorFlow for TPUs of which there is no strategy."""
    _described.append("TPU")
    try:
        yield
    finally:
        _described.pop()


def avoids_gathers() -> bool:
    """Whether to compute sums of products instead of gathering numbers.

    XLA computes such a sum without the tensor of its terms. TensorFlow's own
    kernels would need that tensor, so they gather; so do programs that
    TensorFlow compiles for a CPU, where the sum takes several times as long.
    """
    if keras.backend.backend() != "tensorflow":
        return keras.backend.backend() == "jax"
    import tensorflow as tf

    return bool(_described) or isinstance(
        tf.distribute.get_strategy(), tf.distribute.TPUStrategy
    )


def exact_products() -> contextlib.AbstractContextManager[object]:
    """Products of float32 that TPUs compute with JAX without rounding."""
    if keras.backend.backend() != "jax":
        return contextlib.nullcontext()
    import jax

    return jax.default_matmul_precision("float32")
