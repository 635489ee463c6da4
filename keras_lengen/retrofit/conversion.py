"""Models of Keras with the attention layers of this library."""

from typing import Any

import keras
from keras.src.models.functional import Functional
from keras.src.saving.serialization_lib import SafeModeScope

from keras_lengen.checks.arguments import Instance, Optional, described
from keras_lengen.layers.attention.multi_head import MultiHeadAttention
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.encodings.copies import copy_encoding

_ATTENTIONS = (
    keras.layers.MultiHeadAttention,
    keras.layers.GroupQueryAttention,
)
_GRAPHS = (keras.Sequential, Functional)


def convert(
    model: keras.Model, *, encoding: PositionalEncoding | None = None
) -> keras.Model:
    """Copies a model of Keras, with an encoding in its attention layers.

    Each `keras.layers.MultiHeadAttention` or `GroupQueryAttention` becomes a
    `keras_lengen.layers.MultiHeadAttention` with its name and weights. All
    else is copied as it is: layers, weights, masks, and layers that are called
    several times. Without an encoding, the outputs of real tokens are those of
    `model`, if masks of padding reach all layers that mix tokens.

    The encoding is used where a sequence attends to itself. Attention to
    another sequence has none, as in `EncoderDecoder`. Layers share one copy of
    the encoding, and its weights, if the method shares them (`share_layers`)
    and their heads have the same sizes; otherwise, each layer has its own.
    Each layer draws positions of its own if the encoding draws them.

    Embeddings of positions remain in the model. If `model` is compiled, so is
    the copy, with a new optimizer. Flash attention is not used.

    Args:
        model: Functional model or `keras.Sequential`. Models in it that
            contain attention must be such models too.
        encoding: `PositionalEncoding` that rotates queries and keys or adds a
            bias, or `None` for none.

    Returns:
        The new model, which shares no weight with `model`.

    Raises:
        ValueError: If `model` has no weights yet or no attention layer of
            Keras; if a class of your own makes the attention layers; or if
            the encoding does not fit.

    Example:

    >>> import keras
    >>> from keras_lengen.layers import ALiBi
    >>> from keras_lengen.retrofit import convert
    >>> tokens = keras.Input((None,), dtype="int32")
    >>> x = keras.layers.Embedding(50, 32)(tokens)
    >>> x = keras.layers.MultiHeadAttention(4, 8)(x, x, use_causal_mask=True)
    >>> model = keras.Model(tokens, keras.layers.Dense(50)(x))
    >>> converted = convert(model, encoding=ALiBi())
    >>> converted(keras.ops.ones((2, 100))).shape
    TensorShape([2, 100, 50])
    """
    Optional(Instance(PositionalEncoding, "RoPE()")).check("encoding", encoding)
    if not isinstance(model, keras.Model):
        raise ValueError(f"model must be a keras.Model; got {described(model)}")
    if not model.built:
        raise ValueError(
            "the model has no weights yet: call it once, or build it."
        )
    if not _has_attention(model):
        names = {type(each).__name__ for each in model._flatten_layers()}
        raise ValueError(
            "the model has no keras.layers.MultiHeadAttention or "
            f"GroupQueryAttention, only {', '.join(sorted(names))}: give a "
            "model that has such a layer."
        )
    return _Conversion(encoding).convert(model)


class _Conversion:
    """Makes one copy of each layer of a model.

    Args:
        encoding: `PositionalEncoding`, or `None` for none.
    """

    def __init__(self, encoding: PositionalEncoding | None) -> None:
        self._encoding = encoding
        self._encodings: dict[tuple[int, int], PositionalEncoding] = {}
        self._copies: dict[int, tuple[Any, Any]] = {}
        self._is_self: dict[int, bool] = {}

    def convert(self, model: keras.Model) -> keras.Model:
        """Copies a model and its weights."""
        # The functions of `Lambda` layers come from the model, not from a file.
        with SafeModeScope(safe_mode=False):
            converted = self._copy(model)
        for layer, copy in self._copies.values():
            if not isinstance(layer, keras.Layer) or type(layer) in _GRAPHS:
                continue
            if isinstance(layer, _ATTENTIONS):
                copy.load_keras_weights(layer)
            else:
                copy.set_weights(layer.get_weights())
            if not layer.trainable:
                # The configuration froze the layer, but not the layers in it,
                # and TensorFlow assigns no value that an attribute has.
                copy.trainable = True
                copy.trainable = False
        return converted

    def _copy(self, layer: Any) -> Any:
        """Copies a layer, a model or an operation."""
        if type(layer) in _ATTENTIONS:
            # `_call` copies it: its encoding depends on the call.
            return layer
        if id(layer) not in self._copies:
            self._copies[id(layer)] = layer, self._make_copy(layer)
        return self._copies[id(layer)][1]

    def _make_copy(self, layer: Any) -> Any:
        if type(layer) is keras.Sequential:
            # Its layers have one input, so none of them is an attention.
            return keras.models.clone_model(layer, clone_function=self._copy)
        if type(layer) is Functional:
            return keras.models.clone_model(
                layer,
                # Keras would name them after the tensors.
                input_tensors=keras.tree.map_structure(
                    _copy_input, layer.input
                ),
                clone_function=self._copy,
                call_function=self._call,
            )
        if isinstance(layer, keras.Layer) and _has_attention(layer):
            raise ValueError(_explain_class(layer))
        return type(layer).from_config(layer.get_config())

    def _call(self, layer: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls a layer in the new model."""
        if type(layer) not in _ATTENTIONS:
            return layer(*args, **kwargs)
        names = ("query", "value", "key")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        query, value, key = map(given.get, names)
        is_self = query is (value if key is None else key)
        if not is_self and given.get("use_causal_mask"):
            _check_lengths(layer, query, value)
        if id(layer) not in self._copies:
            copy = self._make_attention(layer, is_self)
            self._copies[id(layer)] = layer, copy
            self._is_self[id(layer)] = is_self
        elif self._encoding and self._is_self[id(layer)] != is_self:
            raise ValueError(
                f"the layer {layer.name} attends to its own sequence in one "
                "call and to another sequence in another, and only the first "
                "takes an encoding: use two layers."
            )
        return self._copies[id(layer)][1](*args, **kwargs)

    def _make_attention(self, layer: Any, is_self: bool) -> MultiHeadAttention:
        config = layer.get_config()
        if isinstance(layer, keras.layers.GroupQueryAttention):
            config["num_heads"] = config.pop("num_query_heads")
            config["key_dim"] = config.pop("head_dim")
        if self._encoding is not None and is_self:
            sizes = config["num_heads"], config["key_dim"]
            if not self._encoding.share_layers or sizes not in self._encodings:
                self._encodings[sizes] = copy_encoding(self._encoding)
            config["encoding"] = self._encodings[sizes]
        return MultiHeadAttention.from_config(config)


def _copy_input(tensor: keras.KerasTensor) -> keras.KerasTensor:
    return keras.Input(
        batch_shape=tensor.shape,
        dtype=tensor.dtype,
        sparse=tensor.sparse,
        name=tensor._keras_history.operation.name,
    )


def _has_attention(layer: keras.Layer) -> bool:
    return any(isinstance(e, _ATTENTIONS) for e in layer._flatten_layers())


def _explain_class(layer: keras.Layer) -> str:
    """Explains why attention in a layer or model cannot be replaced."""
    cls = type(layer)
    if cls.__module__.partition(".")[0] == "keras_hub":
        advice = "give the backbone to keras_lengen.retrofit.RetrofittedModel"
    elif isinstance(layer, Functional):
        advice = (
            "convert keras.Model(model.input, model.output), which has the "
            "same layers without this class"
        )
    else:
        advice = (
            "use keras_lengen.layers.MultiHeadAttention(..., encoding=...) in "
            "the code of this class, and copy weights by its method "
            "load_keras_weights"
        )
    return (
        f"the attention in {layer.name!r} cannot be replaced, because its "
        f"class {cls.__name__} is not one of Keras: {advice}."
    )


def _check_lengths(layer: keras.Layer, query: Any, value: Any) -> None:
    """Raises `ValueError` if a causal mask may differ from that of Keras."""
    lengths = query.shape[1], value.shape[1]
    if None in lengths or lengths[0] != lengths[1]:
        raise ValueError(
            f"the layer {layer.name} attends to another sequence with a causal "
            f"mask, from {lengths[0]} to {lengths[1]} tokens: Keras treats the "
            "queries as the first tokens, MultiHeadAttention as the last "
            "ones. Give the mask as attention_mask."
        )
