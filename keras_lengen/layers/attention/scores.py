"""Rules by which queries and keys give scores."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    Argument,
    Integer,
    InvalidArgument,
    Number,
)
from keras_lengen.layers.attention.call import Call, Tensors
from keras_lengen.layers.attention.context import Context
from keras_lengen.layers.attention.parts import Part
from keras_lengen.layers.encodings.distances import HIDDEN
from keras_lengen.types import Shape, Tensor


class Products(Part):
    """Computes the products of queries and keys."""

    def __call__(self, query: Tensor, key: Tensor, call: Call) -> Tensor:
        """Computes the products.

        Args:
            query: Scaled queries, float32 `(B, T, H, D)`.
            key: float32 `(B, S, H, D)`.
            call: `Call`.

        Returns:
            float32 `(B, H, T, S)`.
        """
        raise NotImplementedError


class Factor(Part):
    """Computes numbers by which the scores of a query are multiplied.

    Attributes:
        counts: Whether they depend on the number of keys that a query sees.
            They then come after a soft cap. Others come before it.
    """

    counts: ClassVar[bool] = False

    def __call__(self, call: Call, shown: Tensor | None) -> Tensor:
        """Computes the factors.

        Args:
            call: `Call`.
            shown: Boolean tensor that broadcasts to `(B, H, T, S)`, true for
                pairs that no term hides; `None` if all are.

        Returns:
            float32 that broadcasts to `(B, H, T, 1)`, with three or four axes.
        """
        raise NotImplementedError

    def obstacle(self) -> str | None:
        # Kernels read queries that are multiplied already.
        return None


class Term(Part):
    """Computes numbers that are added to scores."""

    @property
    def hides(self) -> bool:
        """Whether the numbers hide keys, by values of `HIDDEN` and less."""
        return False

    def __call__(self, call: Call) -> Tensor | None:
        """Computes float32 that broadcasts to `(B, H, T, S)`, or `None`."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, eq=False)
class LearnedFactor(Factor):
    """A factor with a weight.

    Attributes:
        weight: Variable of the shape and with the first numbers that `start`
            returns.
    """

    weight: Any

    @staticmethod
    def start(heads: int, width: int) -> tuple[Shape, float]:
        """Returns the shape of the weight and the first value of its numbers.

        Args:
            heads: int, number of heads `H`.
            width: int, width of the inputs `M`.
        """
        raise NotImplementedError


class HeadFactor(LearnedFactor):
    """A learned number of each head."""

    @staticmethod
    def start(heads: int, width: int) -> tuple[Shape, float]:
        return (heads, 1, 1), 1.0

    def __call__(self, call: Call, shown: Tensor | None) -> Tensor:
        return ops.cast(self.weight, "float32")


class LogLengthFactor(LearnedFactor):
    """The logarithm of the number of visible keys, times a number of a head."""

    counts: ClassVar[bool] = True

    @staticmethod
    def start(heads: int, width: int) -> tuple[Shape, float]:
        # So that the mean factor of 1 to 1,024 keys is 1.
        return (heads, 1, 1), 1 / _MEAN_LOG

    @property
    def name(self) -> str:
        return 'score_factor="log_length"'

    def __call__(self, call: Call, shown: Tensor | None) -> Tensor:
        log = ops.log(call.visible.count(shown))
        return ops.cast(self.weight, "float32") * log


class AdaptiveFactor(LearnedFactor):
    """A learned function of the query's token and of its rank."""

    @staticmethod
    def start(heads: int, width: int) -> tuple[Shape, float]:
        return (2, width, heads), 0.0

    def read_queries(self, inputs: Tensor, context: Context) -> Tensors:
        logs = ops.log(ops.cast(ops.maximum(context.ranks, 0) + 2, "float32"))
        slope, power = ops.unstack(
            ops.einsum(
                "btm,nmh->nbth",
                ops.cast(inputs, "float32"),
                ops.cast(self.weight, "float32"),
            ),
            2,
        )
        # The power of the logarithm, which is never 0.
        power = 2 * ops.tanh(power) * ops.expand_dims(ops.log(logs), -1)
        return {"factor": 1 + ops.softplus(slope) * ops.exp(power)}

    def __call__(self, call: Call, shown: Tensor | None) -> Tensor:
        # (B, T, H) to (B, H, T, 1).
        factor = ops.swapaxes(call.queries["factor"], 1, 2)
        return ops.expand_dims(factor, -1)


@keras.saving.register_keras_serializable(package="keras_lengen")
@dataclasses.dataclass(frozen=True)
class LengthFactor(Factor):
    """Grows with the logarithm of the number of keys above a floor.

    The factor of a query that sees `n` keys is
    `1 + slope * log(max(1, n / floor))`. It learns nothing, and up to `floor`
    keys it is 1. Pass it as `score_factor` of `MultiHeadAttention`.

    Args:
        floor: int, at least 1.
        slope: float, at least 0.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import LengthFactor, MultiHeadAttention
    >>> x = ops.ones((2, 10, 32))
    >>> layer = MultiHeadAttention(4, 8, score_factor=LengthFactor(floor=4))
    >>> layer(x, x, use_causal_mask=True).shape
    TensorShape([2, 10, 32])

    Reference: Thinking Machines, 2026 (Inkling, with a slope of 0.1). Differs
    from Llama 4, whose factor `1 + slope * log(1 + n // floor)` has steps.
    https://github.com/huggingface/transformers
    """

    floor: int
    slope: float = 0.1
    counts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Integer().check("floor", self.floor)
        Number(0).check("slope", self.slope)

    def __call__(self, call: Call, shown: Tensor | None) -> Tensor:
        log = ops.log(call.visible.count(shown) / self.floor)
        return 1 + self.slope * ops.maximum(log, 0.0)

    def get_config(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


@dataclasses.dataclass(frozen=True)
class TrainLengthFactor(Factor):
    """Grows with the logarithm of the number of keys beyond a trained length.

    Attributes:
        train_length: int, at least 2.
    """

    train_length: int
    counts: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "train_length"

    def __call__(self, call: Call, shown: Tensor | None) -> Tensor:
        log = ops.log(call.visible.count(shown))
        return ops.maximum(log / math.log(self.train_length), 1.0)


FACTORS: dict[str, type[LearnedFactor]] = {
    "head": HeadFactor,
    "log_length": LogLengthFactor,
    "adaptive": AdaptiveFactor,
}
"""Learned factors by the values of `score_factor`."""


class FactorArgument(Argument[str | Factor | None]):
    """The name of a learned factor, a factor without weights, or `None`."""

    @property
    def examples(self) -> tuple[Any, ...]:
        return (*FACTORS, LengthFactor(floor=2, slope=0.5), None)

    def convert(self, value: Any) -> str | Factor | None:
        learned = isinstance(value, LearnedFactor)
        if isinstance(value, Factor) and not learned:
            return value
        if value is None or (isinstance(value, str) and value in FACTORS):
            return value
        raise InvalidArgument

    def describe(self) -> str:
        names = ", ".join(f'"{name}"' for name in FACTORS)
        return f"{names}, a LengthFactor or None"

    def serialize(self, value: Any) -> Any:
        plain = value is None or isinstance(value, str)
        return value if plain else keras.saving.serialize_keras_object(value)

    def deserialize(self, config: Any) -> Any:
        if not isinstance(config, dict):
            return config
        return keras.saving.deserialize_keras_object(config)


@dataclasses.dataclass(frozen=True, eq=False)
class ScoreRule:
    """Computes scores from queries and keys.

    Attributes:
        products: `Products`. Where there are factors, they must be linear in
            the query.
        scale: float, by which queries are multiplied.
        factors: Tuple of `Factor`s.
        soft_cap: float `c`, which makes scores `c * tanh(scores / c)`; or
            `None`.
        terms: Tuple of `Term`s.
    """

    products: Products
    scale: float = 1.0
    factors: tuple[Factor, ...] = ()
    soft_cap: float | None = None
    terms: tuple[Term, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts."""
        return (self.products, *self.factors, *self.terms)

    @property
    def counts(self) -> bool:
        """Whether scores depend on the number of keys that a query sees."""
        return any(factor.counts for factor in self.factors)

    def __call__(self, call: Call) -> Tensor:
        """Computes scores, of hidden keys too, float32 `(B, H, T, S)`."""
        terms, shown = self._add_terms(call)
        before = [each for each in self.factors if not each.counts]
        query = ops.cast(call.queries["query"], "float32")
        query = _multiply(query, before, call, None)
        if self.scale != 1:
            query = query * self.scale
        key = ops.cast(call.keys["key"], "float32")
        scores = self.products(query, key, call)
        if self.soft_cap is not None:
            scores = self.soft_cap * ops.tanh(scores / self.soft_cap)
        for factor in self.factors:
            if factor.counts:
                scores = scores * factor(call, shown)
        return scores if terms is None else scores + terms

    def multiply_query(self, call: Call) -> Tensor:
        """Multiplies queries by all factors, for kernels.

        Returns:
            Queries `(B, T, H, D)`, of their dtype. Products of these and the
            keys are scores without terms, if there is no soft cap before
            factors that count.
        """
        query = call.queries["query"]
        if not self.factors:
            return query
        multiplied = _multiply(
            ops.cast(query, "float32"), self.factors, call, None
        )
        return ops.cast(multiplied, query.dtype)

    def _add_terms(self, call: Call) -> tuple[Tensor | None, Tensor | None]:
        """Sums the terms, and finds which pairs they do not hide."""
        total = shown = None
        for term in self.terms:
            added = term(call)
            if added is None:
                continue
            total = added if total is None else total + added
            if term.hides:
                shown = added >= HIDDEN / 2
        return total, shown


def _multiply(
    query: Tensor, factors: Iterable[Factor], call: Call, shown: Tensor | None
) -> Tensor:
    """Multiplies queries, float32 `(B, T, H, D)`, by factors."""
    for factor in factors:
        # Factors broadcast to (B, H, T, 1).
        query = query * ops.swapaxes(factor(call, shown), -3, -2)
    return query


_MEAN_LOG = 5.935754
"""Mean of the logarithms of 1 to 1,024."""
