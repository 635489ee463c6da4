"""Where the models of KerasHub read positions: one table.

A *patch* is the place in a backbone at which positions enter it. There are two
kinds: the rotation of queries and keys in every attention layer, and a table
whose rows are added to the embeddings.
"""

import dataclasses
import functools
import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import keras

TESTED_VERSIONS = "0.26.0, 0.31.0 and 0.32.0"
"""Versions of KerasHub with which the tests ran."""


@dataclasses.dataclass(frozen=True)
class RotaryFamily:
    """A backbone whose attention layers rotate queries and keys.

    Attributes:
        attention: str, attribute of a Transformer layer: its attention.
        rotation: str, attribute of the attention: the layer, or the method,
            that rotates a tensor.
        frequencies: str, attribute of the attention: the layer that has the
            `max_wavelength`.
        heads: str, attribute of the attention: its number of heads.
        head_width: Function of the attention, the width of a head.
        rotated_width: str or `None`, attribute of the attention: number of
            features that are rotated, the first ones of a head; `None`: all.
        weight_dropout: str or `None`, attribute of the attention: the dropout
            of the attention weights.
        window: str or `None`, attribute of the attention: whether it adds a
            sliding window to the mask by `_mask_sliding_window`.
        keeps_rotation: str or `None`, attribute of the attention: whether it
            keeps its own rotation, at the positions of the sampler, although
            there is an encoding. So do layers that only see near tokens.
        without_positions: Tuple of str, classes of rotations that can only be
            replaced by an encoding, because they fail at given positions.
    """

    attention: str = "_self_attention_layer"
    rotation: str = "rotary_embedding_layer"
    frequencies: str = "rotary_embedding_layer"
    heads: str = "num_query_heads"
    head_width: Callable[[Any], int] = lambda attention: find_projection(
        attention
    ).kernel.shape[-1]
    rotated_width: str | None = None
    weight_dropout: str | None = None
    window: str | None = None
    keeps_rotation: str | None = None
    without_positions: tuple[str, ...] = ()

    layers = "transformer_layers"
    products = "_compute_attention"
    """Method of the attention that computes its result from query, key and
    value."""

    def find_attentions(self, backbone: Any) -> list[Any]:
        """Finds the attention layers of a backbone, the first one first.

        Raises:
            RuntimeError: If the backbone is not made as in the tested versions
                of KerasHub.
        """
        found = [
            find_part(backbone, layer, self.attention)
            for layer in find_part(backbone, backbone, self.layers)
        ]
        for attention in found:
            for name in (
                *(self.rotation, self.products, self.heads),
                *(self.rotated_width, self.weight_dropout, self.window),
                self.keeps_rotation,
            ):
                if name is not None:
                    find_part(backbone, attention, name)
            frequencies = find_part(backbone, attention, self.frequencies)
            find_part(backbone, frequencies, "max_wavelength")
            self._check_arguments(backbone, attention)
        return found

    def find_rotation(self, attention: Any) -> Any:
        """Finds the function that rotates a tensor at given positions."""
        rotation = getattr(attention, self.rotation)
        if isinstance(rotation, keras.layers.Layer):
            return rotation.call
        if "positions" not in inspect.signature(rotation).parameters:
            # Gemma before KerasHub 0.31: the method permutes the features of
            # queries and keys alike, which their products do not see.
            return getattr(attention, self.frequencies).call
        return rotation

    def _check_arguments(self, backbone: Any, attention: Any) -> None:
        """Checks the arguments of the methods that a patch replaces."""
        rotation = self.find_rotation(attention)
        products = getattr(attention, self.products)
        for method, wanted in (
            (rotation, ("start_index", "positions")),
            (products, ("attention_mask",)),
            (attention.call, ("attention_mask", "cache", "cache_update_index")),
        ):
            taken = inspect.signature(method).parameters
            missing = [name for name in wanted if name not in taken]
            if missing:
                raise _make_error(
                    backbone,
                    f"`{method.__qualname__}` takes no `{missing[0]}`",
                )


@dataclasses.dataclass(frozen=True)
class TableFamily:
    """A backbone that adds a row of a table to each embedding.

    Attributes:
        embedding: str, attribute of the backbone: the layer with the table.
        table: str, attribute of this layer: the table.
    """

    embedding: str = "position_embedding"
    table: str = "position_embeddings"

    def find_embedding(self, backbone: Any) -> Any:
        """Finds the layer with the table.

        Raises:
            RuntimeError: If the backbone is not made as in the tested versions
                of KerasHub.
        """
        embedding = find_part(backbone, backbone, self.embedding)
        find_part(backbone, embedding, self.table)
        taken = inspect.signature(embedding.call).parameters
        for name in ("start_index", "positions"):
            if name not in taken:
                raise _make_error(
                    backbone, f"`{self.embedding}.call` takes no `{name}`"
                )
        return embedding


FAMILIES: dict[str, RotaryFamily | TableFamily] = {
    "LlamaBackbone": RotaryFamily(),
    "MistralBackbone": RotaryFamily(heads="_num_query_heads"),
    "MixtralBackbone": RotaryFamily(),
    "Phi3Backbone": RotaryFamily(
        attention="attention",
        without_positions=("Phi3SuScaledRotaryEmbedding",),
    ),
    "QwenBackbone": RotaryFamily(window="use_sliding_window_attention"),
    "QwenMoeBackbone": RotaryFamily(window="use_sliding_window_attention"),
    "Qwen3Backbone": RotaryFamily(window="sliding_window_size"),
    "Qwen3MoeBackbone": RotaryFamily(window="sliding_window_size"),
    "GemmaBackbone": RotaryFamily(
        attention="attention",
        # The method also permutes the features, as Gemma's weights need.
        rotation="_apply_rope",
        frequencies="rope_layer",
        head_width=lambda attention: attention.head_dim,
        weight_dropout="dropout_layer",
        window="use_sliding_window_attention",
    ),
    "Gemma3Backbone": RotaryFamily(
        attention="attention",
        rotation="rope_layer",
        frequencies="rope_layer",
        head_width=lambda attention: attention.head_dim,
        weight_dropout="dropout_layer",
        window="use_sliding_window_attention",
        keeps_rotation="use_sliding_window_attention",
    ),
    "GPTNeoXBackbone": RotaryFamily(
        heads="num_heads",
        head_width=lambda attention: attention.attn_head_size,
        rotated_width="rotary_dim",
        weight_dropout="_attn_dropout_layer",
    ),
    "GPT2Backbone": TableFamily(),
    "BertBackbone": TableFamily(),
    "DistilBertBackbone": TableFamily("embeddings.position_embedding"),
    "OPTBackbone": TableFamily("embeddings.position_embedding"),
    "RobertaBackbone": TableFamily("embeddings.position_embedding"),
}
"""The patch of each family, by the name of its backbone's class. Subclasses,
such as `Llama3Backbone`, have the patch of their base class."""


def find_family(backbone: Any) -> RotaryFamily | TableFamily:
    """Finds the family of a backbone.

    Raises:
        ValueError: If the table has no such family.
    """
    for cls in type(backbone).__mro__:
        if cls.__name__ in FAMILIES:
            return FAMILIES[cls.__name__]
    raise ValueError(
        "backbone must be a KerasHub backbone whose patch is known, one of "
        f"{', '.join(FAMILIES)} or a subclass; got "
        f"{type(backbone).__name__}. A task, such as LlamaCausalLM, has its "
        "backbone as the attribute `backbone`. For another family, add its "
        "attributes to keras_lengen.retrofit.FAMILIES."
    )


def find_projection(attention: Any) -> Any:
    """Finds the layer that makes the queries of an attention layer."""
    for name in ("_query_dense", "query_dense"):
        if hasattr(attention, name):
            return getattr(attention, name)
    raise AttributeError("_query_dense")


def find_scale(attention: Any) -> float:
    """Finds the factor of the products of queries and keys."""
    if hasattr(attention, "_inv_norm_factor"):
        return float(attention._inv_norm_factor)
    width: int = attention.head_dim
    if not attention.query_head_dim_normalize:
        width = attention.hidden_dim // attention.num_query_heads
    return 1 / math.sqrt(width)


def find_part(backbone: Any, owner: Any, name: str) -> Any:
    """Reads an attribute of a part of a backbone.

    Raises:
        RuntimeError: With the versions of KerasHub, if it is not there.
    """
    try:
        return functools.reduce(getattr, name.split("."), owner)
    except AttributeError:
        raise _make_error(
            backbone, f"its {type(owner).__name__} has no `{name}`"
        ) from None


def _make_error(backbone: Any, what: str) -> RuntimeError:
    hub = sys.modules.get("keras_hub")
    version = getattr(hub, "__version__", "an unknown version")
    return RuntimeError(
        f"RetrofittedModel cannot change this {type(backbone).__name__}: "
        f"{what}. keras_hub is {version}; the internals that RetrofittedModel "
        f"replaces are those of keras_hub {TESTED_VERSIONS}: install one of "
        "these."
    )
