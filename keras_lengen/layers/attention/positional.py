"""Positional encodings as parts of attention."""

import dataclasses

from keras_lengen.layers.attention.parts import Call
from keras_lengen.layers.attention.scores import Products, Term
from keras_lengen.layers.encodings.base import PositionalEncoding, pass_on
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.types import Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedProducts(Products):
    """Products of queries and keys that an encoding may have rotated.

    Attributes:
        encoding: `PositionalEncoding`.
    """

    encoding: PositionalEncoding

    def __call__(self, query: Tensor, key: Tensor, call: Call) -> Tensor:
        positions = call.queries["positions"], call.keys["positions"]
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
        return self.encoding.hides_keys

    @property
    def name(self) -> str:
        return f"the bias of {type(self.encoding).__name__}"

    def __call__(self, call: Call) -> Tensor | None:
        return self.encoding.attention_bias(
            call.queries["query"],
            call.keys["key"],
            call.queries["positions"],
            call.keys["positions"],
            causal=call.visible.reach.causal
            and self.encoding.sampler.keeps_order,
            **pass_on(call.keys.get("prepared")),
        )

    def obstacle(self) -> str | None:
        if isinstance(self.encoding, BiasEncoding):
            return self.encoding.find_pair_obstacle()
        return f"{self.name} is no function of two positions"
