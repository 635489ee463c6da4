"""Activations that the blocks of a model compute for given inputs."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from keras_lengen.checks.arguments import Instance
from keras_lengen.layers.transformer import TransformerBlock
from keras_lengen.types import Array, Tensor


def block_activations(model: keras.Model, inputs: Any) -> dict[str, Array]:
    """Computes what the Transformer blocks of a model return.

    Runs the model once, as in evaluation.

    Args:
        model: Built Keras model with `TransformerBlock`s of this library.
        inputs: Inputs of the model.

    Returns:
        Dict from the paths of blocks, in the order in which the model calls
        them, to float32 NumPy arrays `(B, T, M)`. If a block is called several
        times, this is its last output.

    Raises:
        ValueError: If `model` is not a Keras model, or has no such block.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.analysis import block_activations
    >>> from keras_lengen.models import TransformerEncoder
    >>> model = TransformerEncoder(
    ...     vocabulary_size=3, output_size=2, num_layers=2, num_heads=4,
    ...     model_dim=8)
    >>> found = block_activations(model, ops.ones((2, 5), "int32"))
    >>> [values.shape for values in found.values()]
    [(2, 5, 8), (2, 5, 8)]
    """
    Instance(keras.Model, "TransformerEncoder(...)").check("model", model)
    blocks = [
        layer
        for layer in model._flatten_layers()
        if isinstance(layer, TransformerBlock)
    ]
    if not blocks:
        raise ValueError(
            "model must have TransformerBlock layers of keras_lengen; got "
            f"{type(model).__name__} without one."
        )
    found: dict[str, Tensor] = {}
    with contextlib.ExitStack() as stack:
        for block in blocks:
            stack.enter_context(_recorded(block, found))
        model(inputs, training=False)
    return {
        path: np.asarray(keras.ops.convert_to_numpy(values))
        for path, values in found.items()
    }


@contextlib.contextmanager
def _recorded(
    block: TransformerBlock, found: dict[str, Tensor]
) -> Iterator[None]:
    """Lets a block put its output into `found` whenever it is called."""
    call: Callable[..., Any] = block.call

    def record(*args: Any, **kwargs: Any) -> Any:
        outputs = call(*args, **kwargs)
        # With a cache, it returns that, too.
        features = outputs[0] if isinstance(outputs, tuple) else outputs
        # NumPy has no bfloat16.
        found[block.path] = keras.ops.cast(features, "float32")
        return outputs

    # Past Keras, which counts the attributes of a layer.
    object.__setattr__(block, "call", record)
    try:
        yield
    finally:
        object.__delattr__(block, "call")
