"""Attention weights that a model computes for given inputs."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, overload

import keras
import numpy as np

from keras_lengen.checks.arguments import Instance
from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.types import Array, Tensor


@overload
def attention_weights(
    model: keras.Model,
    inputs: Any,
    *,
    name: str | None = None,
    return_outputs: Literal[False] = False,
) -> dict[str, Array]: ...


@overload
def attention_weights(
    model: keras.Model,
    inputs: Any,
    *,
    name: str | None = None,
    return_outputs: Literal[True],
) -> tuple[dict[str, Array], Any]: ...


def attention_weights(
    model: keras.Model,
    inputs: Any,
    *,
    name: str | None = None,
    return_outputs: bool = False,
) -> dict[str, Array] | tuple[dict[str, Array], Any]:
    """Computes which tokens the queries of a model attend to.

    Runs the model once, as in evaluation. The selected layers do not process
    queries in chunks, so all their weights must fit into memory.

    Args:
        model: Built Keras model with `MultiHeadAttention` layers of this
            library.
        inputs: Inputs of the model.
        name: str. Name of layers, such as `"cross_attention"`, or the path of
            one layer; `None`: all layers.
        return_outputs: bool. Whether to return the outputs of the model too. A
            second run of a model that draws positions would draw others.

    Returns:
        Dict from the paths of layers, in the order in which the model calls
        them, to float32 NumPy arrays `(B, H, T, S)`. The weights of a query
        sum to 1, except with `GeometricAttention`. With `return_outputs`, the
        pair of the dict and the outputs.

    Raises:
        ValueError: If `model` is not a Keras model, or has no such layer.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.analysis import attention_weights
    >>> from keras_lengen.models import TransformerEncoder
    >>> model = TransformerEncoder(
    ...     vocabulary_size=3, output_size=2, num_layers=1, num_heads=4,
    ...     model_dim=8)
    >>> found = attention_weights(model, ops.ones((2, 5), "int32"))
    >>> [weights.shape for weights in found.values()]
    [(2, 4, 5, 5)]
    """
    Instance(keras.Model, "TransformerEncoder(...)").check("model", model)
    layers = [
        layer
        for layer in model._flatten_layers()
        if isinstance(layer, MultiHeadAttention)
    ]
    chosen = [
        layer for layer in layers if name in (None, layer.name, layer.path)
    ]
    if not chosen:
        known = ", ".join(sorted({layer.name for layer in layers})) or "none"
        raise ValueError(
            f"name must be the name of attention layers of the model ({known});"
            f" got {name!r}."
        )
    found: dict[str, Tensor] = {}
    with contextlib.ExitStack() as stack:
        for layer in chosen:
            stack.enter_context(_recorded(layer, found))
        outputs = model(inputs, training=False)
    weights = {
        path: np.asarray(keras.ops.convert_to_numpy(weights))
        for path, weights in found.items()
    }
    return (weights, outputs) if return_outputs else weights


@contextlib.contextmanager
def _recorded(
    layer: MultiHeadAttention, found: dict[str, Tensor]
) -> Iterator[None]:
    """Lets a layer put its weights into `found` whenever it is called."""
    call: Callable[..., Any] = layer.call

    def record(*args: Any, **kwargs: Any) -> Any:
        output, weights, *cache = results = call(
            *args, **{**kwargs, "return_attention_scores": True}
        )
        found[layer.path] = weights
        if kwargs.get("return_attention_scores"):
            return results
        return (output, *cache) if cache else output

    # Past Keras, which counts the attributes of a layer.
    object.__setattr__(layer, "call", record)
    try:
        yield
    finally:
        object.__delattr__(layer, "call")
