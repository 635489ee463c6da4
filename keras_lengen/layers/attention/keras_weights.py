"""Weights of the attention layer of Keras."""

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import described
from keras_lengen.types import Shape

if TYPE_CHECKING:
    from keras_lengen.layers.attention.multi_head import MultiHeadAttention


def load_keras_weights(layer: "MultiHeadAttention", source: Any) -> None:
    """Copies weights; see `MultiHeadAttention.load_keras_weights`."""
    if not isinstance(source, keras.layers.MultiHeadAttention):
        raise ValueError(
            "layer must be a keras.layers.MultiHeadAttention; got "
            f"{described(source)}."
        )
    if not source.built:
        raise ValueError(
            "the layer of Keras has no weights yet: call it once, or build it."
        )
    kernels = (
        dense.kernel.shape
        for dense in (source.query_dense, source.value_dense, source.key_dense)
    )
    if not layer.built:
        layer.build(*((None, None, kernel[0]) for kernel in kernels))
    heads, key_heads = layer.num_heads, layer.num_key_value_heads
    key_heads = key_heads or heads
    parts = {
        "query": (heads, layer.key_dim),
        "key": (key_heads, layer.key_dim),
        "value": (key_heads, layer.value_width),
        "output": (heads, layer.value_width),
        "gate": (heads, layer.value_width),
    }
    axes = layer.find_output_axes((layer.input_widths["query"],))
    for name, head in parts.items():
        own = getattr(layer, f"{name}_dense", None)
        theirs = getattr(source, f"_{name}_dense", None)
        if (own is None) != (theirs is None):
            raise ValueError(
                f"use_gate={layer.use_gate} is not that of the layer of Keras: "
                "make a layer with the other value."
            )
        if own is not None:
            _copy(name, own, theirs, head, axes)


def _copy(
    name: str,
    own: Any,
    theirs: Any,
    head: tuple[int, int],
    output_axes: tuple[int, ...],
) -> None:
    """Copies the kernel and bias of one projection."""
    rows = own.kernel.shape[0]
    after: Shape = output_axes if name == "output" else head
    shape: Shape = (*head, *after) if name == "output" else (rows, *after)
    pairs: dict[str, Shape] = {"kernel": shape}
    if own.bias is not None:
        pairs["bias"] = after
    elif theirs.bias is not None:
        pairs["bias"] = ()
    for part, wanted in pairs.items():
        weight = getattr(theirs, part)
        got = None if weight is None else tuple(weight.shape)
        if got != wanted:
            raise ValueError(
                f"the {part} of the {name} projection must have shape "
                f"{wanted or None}; that of the layer of Keras has {got}: make "
                "a layer with the same arguments."
            )
        variable = getattr(own, part)
        # A copy: where JAX donates the memory of one, the other must stay.
        values = np.array(ops.convert_to_numpy(weight))
        variable.assign(values.reshape(variable.shape))
