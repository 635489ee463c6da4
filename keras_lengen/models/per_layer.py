"""Arguments of models that may differ between layers."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from keras_lengen.checks.arguments import Argument, InvalidArgument
from keras_lengen.layers.encodings.base import (
    EncodingArgument,
    PositionalEncoding,
)
from keras_lengen.layers.encodings.copies import copy_encoding
from keras_lengen.layers.encodings.nope import NoPE

T = TypeVar("T")

ByLayer: TypeAlias = T | Sequence[T] | Callable[[int], T]
"""A value for all layers, a list with one for each, or a function."""


class PerLayer(Argument[T | list[T]]):
    """A value that another declaration accepts, for all layers or for each.

    The value is one for all layers; a list or tuple with one entry for each
    layer; or a plain function of the number of a layer, from 0, whose results
    `resolve` puts in a list.

    Args:
        inner: `Argument`, the declaration of the value of a layer.
    """

    def __init__(self, inner: Argument[T]) -> None:
        super().__init__(what=inner.what, variant=inner.variant)
        self.inner = inner

    @property
    def examples(self) -> tuple[Any, ...]:
        return self.inner.examples

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.inner.name = name

    def __set__(
        self, instance: Any, value: ByLayer[T | type[Any] | None]
    ) -> None:
        super().__set__(instance, value)

    def convert(self, value: Any) -> Any:
        # Not everything callable: encodings are, too.
        if _is_rule(value):
            return value
        if not isinstance(value, list | tuple):
            return self.inner.convert(value)
        if not value:
            raise InvalidArgument
        return [self.inner.convert(each) for each in value]

    def describe(self) -> str:
        return (
            f"{self.inner.describe()}, or a list with one for each layer, or a "
            "function of the number of a layer"
        )

    def resolve(self, value: Any, num_layers: int) -> Any:
        """Reads a value for a number of layers.

        Returns:
            The value for all layers, or a list with that of each layer.

        Raises:
            ValueError: If a value is wrong, or there is not one for each layer.
        """
        value = self.check(self.name, value)
        if _is_rule(value):
            values = [value(layer) for layer in range(num_layers)]
            value = self.check(self.name, values)
        if isinstance(value, list) and len(value) != num_layers:
            raise ValueError(
                f"{self.name} must have one entry for each of the {num_layers} "
                f"layers; got {len(value)}."
            )
        return value

    def serialize(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.inner.serialize(each) for each in value]
        return self.inner.serialize(value)

    def deserialize(self, config: Any) -> Any:
        if isinstance(config, list):
            return [self.inner.deserialize(each) for each in config]
        return self.inner.deserialize(config)


def _is_rule(value: Any) -> bool:
    return inspect.isroutine(value) or isinstance(value, functools.partial)


_SAME = "same_as_layer"
"""Key of a configuration that stands for an object of an earlier layer."""


class EncodingPerLayer(PerLayer[PositionalEncoding]):
    """An encoding or `None`, for all layers or for each of them.

    An encoding that is the entry of several layers stays one encoding when it
    is copied or saved, and so does a sampler of several encodings.
    """

    def __init__(self) -> None:
        super().__init__(EncodingArgument(absent=NoPE))

    def resolve(self, value: Any, num_layers: int) -> Any:
        """Reads encodings for a number of layers, and copies them."""
        value = super().resolve(value, num_layers)
        if not isinstance(value, list):
            return copy_encoding(value)
        for layer, encoding in enumerate(value):
            if encoding.stage == "embeddings":
                raise ValueError(
                    f"{self.name} of layer {layer} is a "
                    f"{type(encoding).__name__}, which is added to the "
                    "embeddings, before all layers: pass it by itself, or "
                    "encodings of attention."
                )
        copies: dict[int, PositionalEncoding] = {}
        samplers: dict[int, Any] = {}
        for each in value:
            if id(each) in copies:
                continue
            changes = {}
            sampler = samplers.get(id(each.sampler))
            if sampler is not None and "sampler" in each.get_config():
                changes["sampler"] = sampler
            copies[id(each)] = copy_encoding(each, **changes)
            samplers.setdefault(id(each.sampler), copies[id(each)].sampler)
        return [copies[id(each)] for each in value]

    def serialize(self, value: Any) -> Any:
        if not isinstance(value, list):
            return self.inner.serialize(value)
        samplers = [each.sampler for each in value]
        configs = []
        for layer, encoding in enumerate(value):
            if value.index(encoding) < layer:
                configs.append({_SAME: value.index(encoding)})
                continue
            config = self.inner.serialize(encoding)
            first = samplers.index(encoding.sampler)
            if first < layer and "sampler" in config["config"]:
                config["config"]["sampler"] = {_SAME: first}
            configs.append(config)
        return configs

    def deserialize(self, config: Any) -> Any:
        if not isinstance(config, list):
            return self.inner.deserialize(config)
        encodings: list[Any] = []
        for each in config:
            if not isinstance(each, dict):
                encodings.append(each)
                continue
            if _SAME in each:
                encodings.append(encodings[each[_SAME]])
                continue
            inner = each["config"]
            sampler = inner.get("sampler")
            if isinstance(sampler, dict) and _SAME in sampler:
                sampler = encodings[sampler[_SAME]].sampler
                each = {**each, "config": {**inner, "sampler": sampler}}
            encodings.append(self.inner.deserialize(each))
        return encodings


def give_own_weights(
    encodings: Iterable[PositionalEncoding | None],
) -> list[PositionalEncoding | None]:
    """Lists the encodings of blocks: copies, unless blocks share weights."""
    found: list[PositionalEncoding | None] = []
    for each in encodings:
        if each is None or each.share_layers or each not in found:
            found.append(each)
        else:
            found.append(copy_encoding(each))
    return found
