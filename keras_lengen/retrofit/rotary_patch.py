"""New positions for attention layers that rotate queries and keys."""

import contextvars
import functools
from typing import Any

import keras
from keras import ops

from keras_lengen.layers.attention.cache import find_new_positions
from keras_lengen.layers.attention.call import Call
from keras_lengen.layers.attention.engines import attend_at_once
from keras_lengen.layers.attention.positional import (
    EncodedBias,
    EncodedProducts,
)
from keras_lengen.layers.attention.rule import Rule
from keras_lengen.layers.attention.scores import ScoreRule, Term
from keras_lengen.layers.attention.visibility import Reach, Visibility
from keras_lengen.layers.attention.weights import Softmax
from keras_lengen.layers.encodings.base import (
    AttentionSpec,
    PositionalEncoding,
    pass_on,
)
from keras_lengen.layers.encodings.copies import copy_encoding
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.retrofit.changes import Changes
from keras_lengen.retrofit.families import RotaryFamily, find_scale
from keras_lengen.retrofit.shared_positions import Pass, SharedPositions
from keras_lengen.types import Positions, Size, Tensor

# The index of the first new token, while an attention layer is called.
_index: contextvars.ContextVar[Size] = contextvars.ContextVar(
    "index", default=0
)


def change_attentions(
    changes: Changes,
    family: RotaryFamily,
    backbone: Any,
    shared: SharedPositions,
    encoding: PositionalEncoding | None,
) -> None:
    """Changes all attention layers of a backbone.

    Args:
        changes: `Changes` that gets the replaced methods.
        family: `RotaryFamily` of the backbone.
        backbone: Backbone of KerasHub.
        shared: `SharedPositions` of all layers.
        encoding: Encoding in place of the backbone's own rotation, or `None`
            to keep it.
    """
    attentions = family.find_attentions(backbone)
    rotation = type(getattr(attentions[0], family.rotation)).__name__
    if encoding is None and rotation in family.without_positions:
        raise ValueError(
            f"the {rotation} of this {type(backbone).__name__} takes no other "
            "positions: give encoding=, such as LongRoPE with the model's "
            "factors, which computes the same at positions 0, 1, 2, ..."
        )
    own = None
    for attention in attentions:
        if family.keeps_rotation and getattr(attention, family.keeps_rotation):
            AttentionPatch(family, attention, shared, None).insert(changes)
            continue
        if encoding is not None and (own is None or not own.share_layers):
            own = fit_encoding(encoding, family, attention)
        AttentionPatch(family, attention, shared, own).insert(changes)


def fit_encoding(
    encoding: PositionalEncoding, family: RotaryFamily, attention: Any
) -> PositionalEncoding:
    """Makes a copy of an encoding for the heads of an attention layer.

    A copy that rotates gets the base of the frequencies and the features that
    the model was trained with.
    """
    changes: dict[str, Any] = {}
    width = family.head_width(attention)
    if isinstance(encoding, RoPE):
        rotated = width
        if family.rotated_width is not None:
            rotated = getattr(attention, family.rotated_width)
        frequencies = getattr(attention, family.frequencies)
        changes = {
            "max_wavelength": frequencies.max_wavelength,
            "rotary_fraction": rotated / width,
            "layout": "halves",
        }
    copy = copy_encoding(encoding, default_sampler=True, **changes)
    shape = (None, None, getattr(attention, family.heads), width)
    copy.build(shape, shape)
    return copy


class AttentionPatch:
    """Gives an attention layer of KerasHub new positions.

    The layer's own rotation is turned off, so that a cache holds keys as they
    were before. Queries and keys are rotated when their products are computed:
    the positions of all keys are then known.

    Args:
        family: `RotaryFamily` of the backbone.
        attention: Built attention layer.
        shared: `SharedPositions`.
        encoding: Built encoding, or `None` for the layer's own rotation.
    """

    def __init__(
        self,
        family: RotaryFamily,
        attention: Any,
        shared: SharedPositions,
        encoding: PositionalEncoding | None,
    ) -> None:
        self.family = family
        self.attention = attention
        self.shared = shared
        # `compute` asks for it before it calls what uses it.
        self.encoding: Any = encoding
        self.rotation = family.find_rotation(attention)
        self.products = getattr(attention, family.products)
        self.attend = attention.call

    def insert(self, changes: Changes) -> None:
        """Replaces the methods of the layer."""
        attention, family = self.attention, self.family
        parts: list[keras.layers.Layer] = [self.shared]
        if self.encoding is not None:
            parts.append(self.encoding)
        changes.attach(attention, parts)
        rotation = getattr(attention, family.rotation)
        if isinstance(rotation, keras.layers.Layer):
            changes.replace(rotation, "call", _stand_still)
        else:
            changes.replace(attention, family.rotation, _stand_still)
        changes.replace(attention, family.products, self.compute)
        changes.replace(attention, "call", self._make_call())

    def _make_call(self) -> Any:
        @functools.wraps(self.attend)
        def call(*args: Any, **kwargs: Any) -> Any:
            index = kwargs.get("cache_update_index")
            token = _index.set(0 if index is None else index)
            try:
                return self.attend(*args, **kwargs)
            finally:
                _index.reset(token)

        return call

    def compute(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Computes attention, in place of the layer's own method.

        Args:
            query: `(B, T, H, D)`, not rotated.
            key: `(B, S, H, D)`, not rotated; Gemma's has fewer heads.
            value: `(B, S, H, D)`, as the key.
            attention_mask: `(B, T, S)`, or `None`.
            **kwargs: Further arguments of the layer's own method.

        Returns:
            `(B, T, H, D)`.
        """
        current = self.shared.find_pass()
        if current is None:
            current = Pass(self.shared.sample_steps(key))
        positions = current.positions
        # Fewer queries than keys: these are new tokens, beside a cache.
        new = positions
        if query.shape[1] is None or query.shape[1] != key.shape[1]:
            new = find_new_positions(positions, _index.get(), query)
        encoding = self.encoding
        if encoding is None:
            query, key = self._turn(query, new), self._turn(key, positions)
        elif encoding.stage == "bias" or encoding.num_rotations > 1:
            return self._attend(
                query, key, value, attention_mask, new, current, kwargs
            )
        else:
            query, key = self._rotate(query, key, new, current)
        return self.products(query, key, value, attention_mask, **kwargs)

    def _turn(self, features: Tensor, positions: Positions) -> Tensor:
        """Applies the layer's own rotation, at other positions."""
        rotated = self.family.rotated_width
        width = features.shape[-1]
        if rotated is not None:
            width = getattr(self.attention, rotated)
        turned = self.rotation(
            features[..., :width], start_index=0, positions=positions
        )
        if width == features.shape[-1]:
            return turned
        return ops.concatenate([turned, features[..., width:]], axis=-1)

    def _rotate(
        self, query: Tensor, key: Tensor, new: Positions, current: Pass
    ) -> tuple[Tensor, Tensor]:
        """Rotates by the encoding."""
        length = current.lengths
        length = ops.shape(key)[1] if length is None else length
        prepared = self._prepare(query, new, current, length=length)
        return self.encoding.rotate(
            query,
            key,
            new,
            current.positions,
            length=length,
            **pass_on(prepared),
        )

    def _prepare(
        self, query: Tensor, new: Positions, current: Pass, **spec: Any
    ) -> Any:
        """Computes what layers have in common, once for all of them."""
        encoding, found = self.encoding, current.prepared
        if id(encoding) not in found:
            found[id(encoding)] = encoding.prepare(
                new, current.positions, AttentionSpec.of(query, **spec)
            )
        return found[id(encoding)]

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        new: Positions,
        current: Pass,
        kwargs: dict[str, Any],
    ) -> Tensor:
        """Computes attention whose scores are not those of the layer."""
        encoding, mask = self.encoding, self._find_mask(mask)
        causal = self.shared.sampler.is_increasing
        indices = ops.arange(ops.shape(key)[1], dtype="int32")
        new_indices = indices
        if query.shape[1] is None or query.shape[1] != key.shape[1]:
            new_indices = find_new_positions(indices, _index.get(), query)
        terms: tuple[Term, ...] = ()
        prepared = None
        if encoding.stage == "rotation":
            query, key = self._rotate(query, key, new, current)
        else:
            terms = (EncodedBias(encoding),)
            if encoding.uses_token_index:
                new, current = new_indices, Pass(indices)
            prepared = self._prepare(query, new, current, causal=causal)
        # The mask of the model is all that hides keys.
        shown = ops.ones((1, 1, 1, 1), dtype="bool")
        if mask is not None:
            shown = ops.cast(ops.expand_dims(mask, 1), "bool")
        dropout = None
        if self.family.weight_dropout is not None:
            dropout = getattr(self.attention, self.family.weight_dropout)
        scores = ScoreRule(
            EncodedProducts(encoding),
            find_scale(self.attention),
            soft_cap=getattr(self.attention, "logit_soft_cap", None),
            terms=terms,
        )
        call = Call(
            {"query": query},
            {"key": key, "value": value},
            new,
            current.positions,
            new_indices,
            Visibility(Reach(causal), new_indices, indices, joined=shown),
            prepared,
        )
        rule = Rule((), scores, Softmax(), dropout, kwargs.get("training"))
        return attend_at_once(rule, call)[0]

    def _find_mask(self, mask: Tensor | None) -> Tensor | None:
        """Adds the sliding window, which some layers apply to the scores."""
        attention, window = self.attention, self.family.window
        if mask is None or window is None or not getattr(attention, window):
            return mask
        return attention._mask_sliding_window(
            mask, cache_update_index=_index.get()
        )


def _stand_still(
    inputs: Tensor, start_index: Size = 0, positions: Any = None
) -> Tensor:
    """Returns queries or keys unchanged, in place of a rotation."""
    return inputs
