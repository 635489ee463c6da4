"""Ways to compute attention by a rule, which all give the same."""

from collections.abc import Callable
from typing import Any, cast

from keras import ops

from keras_lengen.layers.attention.call import Call
from keras_lengen.layers.attention.chunks import Cuts, map_chunks
from keras_lengen.layers.attention.rule import Rule
from keras_lengen.layers.attention.visibility import Change
from keras_lengen.layers.attention.weighted_sums import (
    is_tensorflow_graph,
    sum_values,
)
from keras_lengen.layers.attention.weights import hide_scores
from keras_lengen.layers.attention.windows import take_positions, take_tokens
from keras_lengen.layers.real_tokens import order_real_tokens
from keras_lengen.types import Tensor


def attend_at_once(rule: Rule, call: Call) -> tuple[Tensor, Tensor]:
    """Computes the attention of all queries to all keys.

    Args:
        rule: `Rule`.
        call: `Call`.

    Returns:
        Weighted sums of the values `(B, T, H, value_dim)`, and the weights,
        float32 `(B, H, T, S)`.
    """
    call = call.repeat_heads()
    scores, value = rule.scores(call), call.keys["value"]
    weights = rule.weights(scores, call.visible)
    if (
        rule.training
        and rule.weights.is_plain
        and rule.dropout is None
        and value.dtype == "float32"
        and scores.shape[-1] != 1
        and is_tensorflow_graph()
    ):
        shown = hide_scores(scores, call.visible.mask())
        return sum_values(shown, weights, value), weights
    dropped = weights
    if rule.dropout is not None:
        dropped = rule.dropout(weights, training=rule.training)
    dropped = ops.cast(dropped, value.dtype)
    return ops.einsum("bhts,bshd->bthd", dropped, value), weights


def attend_in_chunks(rule: Rule, call: Call, chunk_size: int) -> Tensor:
    """Computes the attention of one chunk of queries after the other.

    Args:
        rule: `Rule`.
        call: `Call` without anything that is prepared for all queries.
        chunk_size: int, number of queries in a chunk.

    Returns:
        `(B, T, H, value_dim)`.
    """
    cuts = Cuts(chunk_size)
    plan = call.map_queries(cuts.split).map_keys(cuts.keep)
    return _attend(rule, call, plan, cuts)


def attend_near(rule: Rule, call: Call, chunk_size: int) -> Tensor:
    """Computes it in chunks that read only the keys in their windows.

    Args:
        rule: `Rule` that is local.
        call: `Call` of self-attention with a window.
        chunk_size: int, number of queries in a chunk.

    Returns:
        `(B, T, H, value_dim)`.
    """
    visible, moved = call.visible, None
    reach, keys = visible.reach, visible.keys
    # A window has ranked keys by masks and documents.
    call = call.see(padding=None, documents=None)
    if len(keys.shape) == 2:
        order = order_real_tokens(keys >= 0)
        moved = ops.argsort(order, axis=-1)
        take = _take(order)
        call = call.map_queries(take).map_keys(take)
        # Padding, now behind all real tokens, sees the last of them.
        call = call.see(queries=ops.arange(ops.shape(keys)[1], dtype="int32"))
        keys = call.visible.keys
    cuts, sinks = Cuts(chunk_size), reach.sink_tokens
    before = cast(int, reach.window) - 1
    after = 0 if reach.causal else before

    def cut(tensor: Tensor, axis: int) -> Callable[[Any], Tensor]:
        near = cuts.split_near(tensor, axis, before, after)
        first = cuts.keep_first(tensor, axis, sinks)
        return lambda get: ops.concatenate([first(get), near(get)], axis=axis)

    plan = call.map_queries(cuts.split).map_keys(cut)
    # Zeros that fill a chunk are no keys. The first tokens have a part of
    # their own.
    near = cuts.split_near(
        ops.where(keys < sinks, 0, keys + 1), -1, before, after
    )
    first = cuts.keep_first(keys, -1, sinks)
    plan = plan.see(
        keys=lambda get: ops.concatenate([first(get), near(get) - 1], axis=-1)
    )
    output = _attend(rule, call, plan, cuts)
    return output if moved is None else take_tokens(output, moved)


def _attend(rule: Rule, call: Call, plan: Call, cuts: Cuts) -> Tensor:
    """Computes the attention of the chunks of a plan.

    Args:
        rule: `Rule`.
        call: `Call`.
        plan: The same with functions of `cuts` in place of tensors.
        cuts: `Cuts`.
    """
    heads, value = call.queries["query"].shape[2], call.keys["value"]

    def attend(get: Change) -> Tensor:
        return attend_at_once(rule, plan.map_queries(get).map_keys(get))[0]

    return map_chunks(
        attend,
        cuts,
        tokens=ops.shape(call.indices)[0],
        shape=(value.shape[0], cuts.size, heads, value.shape[-1]),
        dtype=value.dtype,
        variables=rule.find_variables(),
        generator=rule.generator,
    )


def _take(order: Tensor) -> Change:
    """Returns a function that puts tokens into an order `(B, T)`."""

    def take(tensor: Tensor, axis: int) -> Tensor:
        if axis == 1:
            return take_tokens(tensor, order)
        # Others are the same for all examples.
        return take_positions(tensor, order) if axis == -1 else tensor

    return take
