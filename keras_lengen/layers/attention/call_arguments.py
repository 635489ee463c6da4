"""Arguments of a call of attention."""

import dataclasses
from typing import TypeAlias

from keras_lengen.types import Positions, Size, Tensor, TensorLike

Cache: TypeAlias = dict[str, Tensor]
"""Keys and values by name, each `(B, S, heads, width)`."""


@dataclasses.dataclass(frozen=True, eq=False)
class CallArguments:
    """Arguments of a call, besides query, value and key.

    `MultiHeadAttention` describes them.
    """

    query_mask: TensorLike | None = None
    value_mask: TensorLike | None = None
    key_mask: TensorLike | None = None
    attention_mask: TensorLike | None = None
    return_attention_scores: bool = False
    training: bool | None = None
    use_causal_mask: bool = False
    positions: Positions | None = None
    key_positions: Positions | None = None
    self_attention: bool | None = None
    segment_ids: TensorLike | None = None
    key_segment_ids: TensorLike | None = None
    length: TensorLike | None = None
    cache: Cache | None = None
    cache_update_index: Size | None = None

    @property
    def has_new_keys(self) -> bool:
        """Whether keys are computed, and not all in the cache."""
        return self.cache is None or self.cache_update_index is not None
