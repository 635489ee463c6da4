"""Which keys the queries of attention see."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Self, TypeAlias

from keras import ops

from keras_lengen.checks.inputs import as_size
from keras_lengen.layers.documents import compare_documents
from keras_lengen.types import Size, Tensor

Change: TypeAlias = Callable[[Any, int], Any]
"""Function of a tensor and of its axis of queries or keys."""


@dataclasses.dataclass(frozen=True)
class Reach:
    """Which keys queries see by their numbers, before anything is computed.

    The numbers are indices; with a window, ranks among the real tokens.

    Attributes:
        causal: bool, whether queries see no later keys.
        window: int, number of keys up to and including its own that a query
            sees, and as many later keys unless `causal`; `None` for all.
        sink_tokens: int, number of first keys that all queries see in spite
            of the window.
    """

    causal: bool = False
    window: int | None = None
    sink_tokens: int = 0

    @property
    def slots(self) -> int:
        """Number of keys in the window and of those that stay visible."""
        return (self.window or 0) + self.sink_tokens

    def list_held(self, count: Tensor, slots: Size) -> Tensor:
        """Lists the ranks of the tokens that the entries of a cache hold.

        The first tokens stay in the first entries. Each later token replaces
        the oldest of the others.

        Args:
            count: int32 tensor `()` or `(B,)`, number of tokens written so far.
            slots: Number of entries.

        Returns:
            int32 `(slots,)` or `(B, slots)`, -1 for entries that are empty.
        """
        count = ops.expand_dims(count, -1)
        slot = ops.arange(slots, dtype="int32")
        # The number of entries that are written again and again.
        ring = ops.maximum(as_size(slots) - self.sink_tokens, 1)
        rounds = ops.floor_divide(count - 1 - slot, ring)
        ranks = slot + ring * ops.maximum(rounds, 0)
        ranks = ops.where(slot < self.sink_tokens, slot, ranks)
        return ops.where(slot < count, ranks, -1)

    def sees(self, queries: Any, keys: Any) -> Any:
        """Finds which keys queries see.

        Args:
            queries: Numbers of queries, integers that broadcast against `keys`.
            keys: Numbers of keys.

        Returns:
            Booleans, or `None` if queries see all keys.
        """
        seen = self.meets((queries, queries), (keys, keys))
        return None if seen is True else seen

    def meets(self, queries: tuple[Any, Any], keys: tuple[Any, Any]) -> Any:
        """Finds whether some query sees some key.

        Args:
            queries: Tuple of the first and the last of consecutive numbers of
                queries, integers that broadcast against those of `keys`.
            keys: Tuple of the first and the last of those of keys.

        Returns:
            Boolean, or `True`.
        """
        (first, last), (first_key, last_key) = queries, keys
        met: Any = True
        if self.window is not None:
            met = first - last_key < self.window
            if not self.causal:
                met = met & (first_key - last < self.window)
            if self.sink_tokens:
                met = met | (first_key < self.sink_tokens)
        if self.causal:
            earlier = first_key <= last
            met = earlier if met is True else met & earlier
        return met


@dataclasses.dataclass(frozen=True, eq=False)
class Visibility:
    """The keys that each query of a call sees.

    Attributes:
        reach: `Reach`.
        queries: Numbers of the queries, int32 `(T,)` or `(B, T)`.
        keys: Numbers of the keys, int32 `(S,)` or `(B, S)`; with a window, -1
            for padding and for empty entries of a cache.
        padding: Boolean tensor `(B, S)`, true for real keys, or `None`.
        given: Boolean tensor `(1 or B, 1 or H, T, S)`, or `None`.
        documents: Documents of the queries, int32 `(B, T)`, and of the keys,
            `(B, S)`; or `None`.
        joined: What `mask` returns, if that is known; or `None`.
    """

    reach: Reach
    queries: Tensor
    keys: Tensor
    padding: Tensor | None = None
    given: Tensor | None = None
    documents: tuple[Tensor, Tensor] | None = None
    joined: Tensor | None = None

    def join(self) -> Self:
        """Combines all masks, so that `mask` returns the result."""
        return dataclasses.replace(self, joined=self.mask())

    def map_queries(self, change: Change) -> Self:
        """Changes all tensors with an axis of queries."""
        given, documents = self.given, self.documents
        return dataclasses.replace(
            self,
            queries=change(self.queries, -1),
            given=None if given is None else change(given, 2),
            documents=documents and (change(documents[0], 1), documents[1]),
        )

    def map_keys(self, change: Change) -> Self:
        """Changes all tensors with an axis of keys, but `given`."""
        padding, documents = self.padding, self.documents
        return dataclasses.replace(
            self,
            keys=change(self.keys, -1),
            padding=None if padding is None else change(padding, 1),
            documents=documents and (documents[0], change(documents[1], 1)),
        )

    def mask(self) -> Tensor | None:
        """Combines all masks.

        Returns:
            Boolean tensor that broadcasts to `(B, H, T, S)`, true where a query
            sees a key; `None` if all queries see all keys.
        """
        if self.joined is not None:
            return self.joined
        masks = [] if self.given is None else [self.given]
        keys = ops.expand_dims(self.keys, -2)
        seen = self.reach.sees(ops.expand_dims(self.queries, -1), keys)
        if self.reach.window is not None:
            seen = seen & (keys >= 0)
        elif self.padding is not None:
            # Not [:, None, None]: TensorFlow Lite adds one axis at a time.
            masks.append(ops.expand_dims(self.padding, (1, 2)))
        if seen is not None:
            by_row = len(seen.shape) == 3
            masks.append(ops.expand_dims(seen, 1) if by_row else seen)
        if self.documents is not None:
            masks.append(compare_documents(*self.documents))
        return functools.reduce(ops.logical_and, masks) if masks else None

    def count(self, shown: Tensor | None = None) -> Tensor:
        """Counts the keys that each query sees, at least 1.

        Args:
            shown: Boolean tensor that broadcasts to `(B, H, T, S)`, true for
                pairs that a bias does not hide; or `None`.

        Returns:
            float32 `(1 or B, 1 or H, 1 or T, 1)`.
        """
        reach = self.reach
        two_sided = reach.window is not None and not reach.causal
        others = self.given, self.documents, shown
        if two_sided or any(each is not None for each in others):
            masks = [each for each in (self.mask(), shown) if each is not None]
            mask = functools.reduce(ops.logical_and, masks)
            return _as_counts(ops.sum(ops.cast(mask, "int32"), axis=-1))
        # Without a tensor of all pairs.
        if reach.window is not None:
            ahead = self.queries + 1 - reach.window
            sinks = ops.clip(ahead, 0, reach.sink_tokens)
            counts = ops.minimum(self.queries + 1, reach.window) + sinks
        elif self.padding is not None:
            real = ops.cumsum(ops.cast(self.padding, "int32"), axis=-1)
            counts = real[:, -1:]
            if reach.causal:
                counts = ops.take(real, self.queries, axis=-1)
        elif reach.causal:
            counts = self.queries + 1
        else:
            counts = ops.expand_dims(ops.shape(self.keys)[-1], -1)
        by_row = len(counts.shape) == 2
        return _as_counts(ops.expand_dims(counts, 1) if by_row else counts)


def find_visible(
    reach: Reach,
    indices: Tensor,
    keys: Size,
    ranks: tuple[Tensor, Tensor] | None = None,
    **masks: Any,
) -> Visibility:
    """Finds the keys that queries see.

    Args:
        reach: `Reach`.
        indices: Indices of the queries among the keys, int32 `(T,)`.
        keys: Number of keys `S`.
        ranks: Ranks of the queries and of the keys, which a window counts.
        **masks: Further attributes of the `Visibility`.
    """
    if ranks is None:
        ranks = indices, ops.arange(keys, dtype="int32")
    return Visibility(reach, *ranks, **masks)


def _as_counts(counts: Tensor) -> Tensor:
    """Returns integers `(T,)` or `(1 or B, 1 or H, T)` as factors of scores."""
    # A query without keys has no weights to scale.
    counts = ops.maximum(ops.cast(counts, "float32"), 1.0)
    counts = ops.expand_dims(counts, -1)
    is_row = len(counts.shape) == 2
    return ops.expand_dims(counts, (0, 1)) if is_row else counts
