"""Positional encodings as parts of attention."""

import dataclasses
from typing import ClassVar

from keras_lengen.layers.attention.cache import Sizes
from keras_lengen.layers.attention.call import Call, Tensors
from keras_lengen.layers.attention.context import Context
from keras_lengen.layers.attention.parts import Part
from keras_lengen.layers.attention.scores import Products, Term
from keras_lengen.layers.encodings.base import PositionalEncoding, pass_on
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.types import Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class Rotation(Part):
    """Rotates queries and new keys by their positions.

    So every key is rotated once, before a cache gets it.

    Attributes:
        encoding: `PositionalEncoding` of the stage `"rotation"`.
    """

    encoding: PositionalEncoding

    @property
    def local(self) -> bool:
        return is_local(self.encoding)

    def enter(
        self, query: Tensor, key: Tensor | None, context: Context
    ) -> tuple[Tensor, Tensor | None]:
        rotated, new_key = self.encoding.rotate(
            query,
            query if key is None else key,
            context.positions,
            context.positions if key is None else context.new_positions,
            length=context.length,
            **pass_on(context.prepared),
        )
        return rotated, key if key is None else new_key

    def obstacle(self) -> str | None:
        return None


@dataclasses.dataclass(frozen=True, eq=False)
class RotationBySteps(Part):
    """Rotates queries and all keys by steps that their tokens make.

    Attributes:
        encoding: `PositionalEncoding` that reads inputs.
        heads: int, number of heads of the keys.
        width: int, width of the keys.
    """

    encoding: PositionalEncoding
    heads: int
    width: int
    local: ClassVar[bool] = False
    mixes: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return f"the angles of {type(self.encoding).__name__}"

    def cached_sizes(self) -> Sizes:
        return {"steps": (self.heads, self.width // 2)}

    def read_keys(self, inputs: Tensor) -> Tensors:
        return {"steps": self.encoding.angle_increments(inputs)}

    def resolve(
        self, query: Tensor, keys: Tensors, context: Context
    ) -> tuple[Tensor, Tensors]:
        keys = dict(keys)
        query, keys["key"] = self.encoding.rotate_by(
            *(query, keys["key"], keys.pop("steps")),
            context.indices,
            context.visible.padding,
            context.runs,
        )
        return query, keys

    def obstacle(self) -> str | None:
        return None


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedProducts(Products):
    """Products of queries and keys that an encoding may have rotated.

    Attributes:
        encoding: `PositionalEncoding`.
    """

    encoding: PositionalEncoding

    def __call__(self, query: Tensor, key: Tensor, call: Call) -> Tensor:
        positions = call.positions, call.key_positions
        return self.encoding.multiply(query, key, *positions)

    def obstacle(self) -> str | None:
        if not self.encoding.reads_key_positions:
            return None
        name = type(self.encoding).__name__
        return f"the products of {name} depend on distances"


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedBias(Term):
    """The bias of an encoding.

    Attributes:
        encoding: `PositionalEncoding` of the stage `"bias"`.
    """

    encoding: PositionalEncoding

    @property
    def hides(self) -> bool:
        return self.encoding.masks_keys

    @property
    def name(self) -> str:
        return f"the bias of {type(self.encoding).__name__}"

    @property
    def local(self) -> bool:
        return is_local(self.encoding)

    def __call__(self, call: Call) -> Tensor | None:
        return self.encoding.attention_bias(
            call.queries["query"],
            call.keys["key"],
            call.positions,
            call.key_positions,
            causal=call.visible.reach.causal
            and self.encoding.sampler.is_increasing,
            **pass_on(call.prepared),
        )

    def obstacle(self) -> str | None:
        if isinstance(self.encoding, BiasEncoding):
            return self.encoding.find_pair_obstacle()
        return f"{self.name} is no function of two positions"


def is_local(encoding: PositionalEncoding) -> bool:
    """Whether an encoding needs no keys but those that a query sees."""
    return not (encoding.uses_token_index or encoding.reads_ranks)
