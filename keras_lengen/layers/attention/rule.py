"""Rules of attention: how queries and keys give weights."""

import dataclasses

import keras
from keras import ops

from keras_lengen.layers.attention.cache import Sizes
from keras_lengen.layers.attention.call import Call, Tensors
from keras_lengen.layers.attention.context import Context
from keras_lengen.layers.attention.parts import Part
from keras_lengen.layers.attention.scores import ScoreRule
from keras_lengen.layers.attention.weights import WeightRule
from keras_lengen.types import Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class Rule:
    """What a layer computes weights by, in one call.

    Attributes:
        entries: Tuple of parts that change queries and keys first.
        scores: `ScoreRule`.
        weights: `WeightRule`.
        dropout: Layer that drops weights, or `None`.
        training: bool or `None`, whether the call trains.
    """

    entries: tuple[Part, ...]
    scores: ScoreRule
    weights: WeightRule
    dropout: keras.layers.Dropout | None = None
    training: bool | None = False

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts."""
        return (*self.entries, *self.scores.parts, self.weights)

    @property
    def local(self) -> bool:
        """Whether keys that no query sees may be left out."""
        return all(part.local for part in self.parts)

    @property
    def generator(self) -> keras.random.SeedGenerator | None:
        """Generator of the dropout, or `None`."""
        return None if self.dropout is None else self.dropout.seed_generator

    def find_variables(self) -> list[keras.Variable]:
        """Finds the variables that the parts refer to."""
        found: dict[int, keras.Variable] = {}
        for part in self.parts:
            for value in keras.tree.flatten(list(vars(part).values())):
                held = value.variables if isinstance(value, keras.Layer) else ()
                held = [value] if isinstance(value, keras.Variable) else held
                found |= {id(variable): variable for variable in held}
        return list(found.values())

    def cached_sizes(self) -> Sizes:
        """Finds what a cache holds beside keys and values."""
        found: Sizes = {}
        for part in self.parts:
            found |= part.cached_sizes()
        return found

    def enter(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        inputs: Tensor | None,
        context: Context,
    ) -> tuple[Tensor, Tensors]:
        """Changes queries and new keys, and reads what parts need of keys.

        Args:
            query: `(B, T, H, D)`.
            key: `(B, S, heads, D)`, or `None` if there are no new keys.
            value: `(B, S, heads, value_dim)`, or `None`.
            inputs: `(B, S, M)`, from which the keys were computed, or `None`.
            context: `Context`.

        Returns:
            The queries, and a dict of the new keys, `(B, S, heads, width)`
            each, empty if there are none.
        """
        for part in self.entries:
            query, key = part.enter(query, key, context)
        if inputs is None:
            return query, {}
        keys: Tensors = {"key": key, "value": value}
        for part in self.parts:
            keys |= part.read_keys(inputs)
        # As a cache rounds them.
        dtype = query.dtype
        return query, {name: ops.cast(keys[name], dtype) for name in keys}

    def resolve(
        self, query: Tensor, keys: Tensors, inputs: Tensor, context: Context
    ) -> Call:
        """Changes queries and all keys, and reads what parts need of queries.

        Args:
            query: `(B, T, H, D)`.
            keys: Dict of all keys, `(B, S, heads, width)` each.
            inputs: `(B, T, M)`, from which the queries were computed.
            context: `Context`.

        Returns:
            `Call` of all queries and keys.
        """
        queries: Tensors = {}
        for part in self.parts:
            query, keys = part.resolve(query, keys, context)
            queries |= part.read_queries(inputs, context)
        return Call(
            {"query": query, **queries},
            keys,
            context.positions,
            context.key_positions,
            context.indices,
            context.visible,
            # Chunks compute it from their positions.
            context.prepared if context.chunk_size is None else None,
        )

    def obstacle(self) -> str | None:
        """Says why the fused kernels cannot compute the rule, if so."""
        obstacles = (part.obstacle() for part in self.parts)
        return next(filter(None, obstacles), None)
