"""Weights of the attention layer of Keras."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import described
from keras_lengen.types import Shape


def load_keras_weights(layer: keras.layers.Layer, source: Any) -> None:
    """Copies weights; see `MultiHeadAttention.load_keras_weights`."""
    if not isinstance(source, _KINDS):
        raise ValueError(
            "layer must be a keras.layers.MultiHeadAttention or "
            f"keras.layers.GroupQueryAttention; got {described(source)}."
        )
    if not source.built:
        raise ValueError(
            "the layer of Keras has no weights yet: call it once, or build it."
        )
    kernels = (
        getattr(source, f"_{name}_dense").kernel.shape
        for name in ("query", "value", "key")
    )
    if not layer.built:
        layer.build(*((None, None, kernel[0]) for kernel in kernels))
    for name, shapes in _list_shapes(layer).items():
        own = getattr(layer, f"{name}_dense", None)
        theirs = getattr(source, f"_{name}_dense", None)
        if (own is None) != (theirs is None):
            raise ValueError(
                f"use_gate={layer.use_gate} is not that of the layer of Keras: "
                "make a layer with the other value."
            )
        if own is not None:
            _copy(name, own, theirs, shapes)


def remove_axes_of_heads(
    layer: keras.layers.Layer, weights: Sequence[Any]
) -> list[Any]:
    """Gives weights with the axes of Keras' kernels and biases our axes.

    Args:
        layer: `MultiHeadAttention` that is built.
        weights: List of arrays, one for each weight of the layer.

    Returns:
        List of the arrays, of which those in the form of Keras are reshaped.
    """
    shapes: dict[int, Shape] = {}
    for name, of_parts in _list_shapes(layer).items():
        dense = getattr(layer, f"{name}_dense", None)
        shapes |= {
            id(getattr(dense, part, None)): shape
            for part, shape in of_parts.items()
        }
    found = list(weights)
    for index, (variable, value) in enumerate(
        zip(layer.weights, weights, strict=False)
    ):
        if tuple(ops.shape(value)) == shapes.get(id(variable)):
            found[index] = ops.reshape(value, variable.shape)
    return found


_KINDS = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)


def _list_shapes(layer: keras.layers.Layer) -> dict[str, dict[str, Shape]]:
    """Lists the shapes that kernels and biases have in Keras.

    Returns:
        Dict from the names of projections, the gate's included, to dicts of
        the shapes of `"kernel"` and `"bias"`.
    """
    heads = layer.num_heads
    key_heads = layer.key_heads
    widths, value = layer.input_widths, layer.value_width
    axes = layer.find_output_axes((widths["query"],))
    of_heads = {
        "query": (widths["query"], heads, layer.key_dim),
        "key": (widths["key"], key_heads, layer.key_dim),
        "value": (widths["value"], key_heads, value),
        "gate": (widths["query"], heads, value),
    }
    shapes: dict[str, dict[str, Shape]] = {
        name: {"kernel": shape, "bias": shape[1:]}
        for name, shape in of_heads.items()
    }
    shapes["output"] = {"kernel": (heads, value, *axes), "bias": axes}
    return shapes


def _copy(name: str, own: Any, theirs: Any, shapes: dict[str, Shape]) -> None:
    """Copies the kernel and bias of one projection."""
    for part, shape in shapes.items():
        variable, weight = getattr(own, part), getattr(theirs, part)
        wanted = None if variable is None else shape
        got = None if weight is None else tuple(weight.shape)
        if (got is None) != (wanted is None):
            has = "no bias" if wanted is None else "a bias"
            raise ValueError(
                f"this layer has {has} of the {name} projection, unlike that "
                "of Keras: make a layer with the same use_bias."
            )
        if got != wanted:
            raise ValueError(
                f"the {part} of the {name} projection must have shape "
                f"{wanted}; that of the layer of Keras has {got}: make "
                "a layer with the same arguments."
            )
        if variable is None:
            continue
        # A copy: where JAX donates the memory of one, the other must stay.
        values = np.array(ops.convert_to_numpy(weight))
        variable.assign(values.reshape(variable.shape))
