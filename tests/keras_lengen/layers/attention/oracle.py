"""Attention by its definition, in float64.

It knows no padding, documents, chunks and caches: these must not change what a
sequence gives that stands alone. Encodings rotate and give biases themselves.
"""

import numpy as np
from keras import ops
from scipy.special import expit, log_expit, softmax

from keras_lengen.layers import (
    ForgettingAttention,
    GeometricAttention,
    LengthFactor,
    PaTHAttention,
    StickBreakingAttention,
)


def attend(
    layer,
    query,
    value=None,
    key=None,
    *,
    causal=False,
    mask=None,
    positions=None,
    key_positions=None,
    training=False,
):
    """Computes the outputs and the weights of attention.

    Shapes are those of `MultiHeadAttention`. Queries are the last of the keys'
    tokens. Without positions, tokens are numbered 0, 1, 2, ...
    """
    is_self = value is None
    value = query if is_self else value
    key = value if key is None else key
    tokens, keys = query.shape[1], key.shape[1]
    given = np.arange(tokens) if positions is None else positions
    if key_positions is None:
        key_positions = given if is_self else np.arange(keys)
    places = given, key_positions
    indices = np.arange(keys - tokens, keys)
    if layer.encoding.uses_token_index:
        places = indices, np.arange(keys)
    heads = layer.num_heads
    queries = normalize(layer, "query", split(layer.query_dense, query, heads))
    own = layer.num_key_value_heads or heads
    all_keys = normalize(layer, "key", split(layer.key_dense, key, own))
    values = split(layer.value_dense, value, own)
    seen = find_visible(layer, tokens, keys, causal, mask)
    bias = find_bias(layer, queries, all_keys, places, causal)
    queries, all_keys = rotate(layer, queries, all_keys, key, places, indices)
    if isinstance(layer, GeometricAttention):
        weights = match(layer, queries, all_keys, query, indices, seen)
    else:
        products = multiply(layer, queries, all_keys, key, places)
        scores = scale(layer, products, query, indices, seen, bias, training)
        scores = scores + bias + sum_gates(layer, key, indices)
        weights = weigh(layer, scores, seen, indices)
    output = np.einsum("bhij,bjhd->bihd", weights, repeat(layer, values))
    output = output.reshape(*query.shape[:2], -1)
    if layer.use_gate:
        output = output * expit(project(layer.gate_dense, query))
    output = project(layer.output_dense, output)
    axes = layer.output_axes
    if isinstance(axes, tuple):
        output = output.reshape(*query.shape[:2], *axes)
    return output, weights


def read(variable):
    return np.float64(ops.convert_to_numpy(variable))


def project(dense, features):
    product = features @ read(dense.kernel)
    return product if dense.bias is None else product + read(dense.bias)


def split(dense, features, heads):
    features = project(dense, np.float64(features))
    return features.reshape(*features.shape[:2], heads, -1)


def repeat(layer, features):
    """Keys and values `(B, S, heads, D)`, once for each head of the queries."""
    return np.repeat(features, layer.num_heads // features.shape[2], axis=2)


def normalize(layer, name, features):
    if not layer.use_query_key_norm:
        return features
    square = np.mean(features**2, axis=-1, keepdims=True)
    scales = read(getattr(layer, f"{name}_scale"))
    return features / np.sqrt(square + layer.norm_epsilon) * scales


def find_visible(layer, tokens, keys, causal=False, mask=None):
    """Which keys each query sees, `(1 or B, 1 or H, T, S)`."""
    query, key = np.arange(keys - tokens, keys)[:, None], np.arange(keys)
    seen = np.ones((tokens, keys), bool)
    if layer.sliding_window:
        seen = abs(query - key) < layer.sliding_window
        seen |= key < layer.sink_tokens
    if causal:
        seen = seen & (key <= query)
    if mask is not None:
        mask = np.expand_dims(mask, 1) if mask.ndim == 3 else mask
        seen = seen & mask
    return seen.reshape((1,) * (4 - seen.ndim) + seen.shape)


def to_tensors(*arrays):
    return [
        ops.convert_to_tensor(array, "float32" if array.ndim == 4 else None)
        for array in arrays
    ]


def find_bias(layer, queries, keys, places, causal):
    encoding = layer.encoding
    if encoding.stage != "bias":
        return 0.0
    return read(
        encoding.attention_bias(
            *to_tensors(queries, repeat(layer, keys), *places),
            causal=causal and encoding.sampler.is_increasing,
        )
    )


def rotate(layer, queries, keys, features, places, indices):
    encoding = layer.encoding
    if encoding.stage != "rotation":
        return queries, keys
    tensors = to_tensors(queries, keys)
    if encoding.reads_inputs:
        steps = encoding.angle_increments(ops.convert_to_tensor(features))
        turned = encoding.rotate_by(*tensors, steps, indices.astype("int32"))
    else:
        turned = encoding.rotate(*tensors, *to_tensors(*places))
    return tuple(map(read, turned))


def multiply(layer, queries, keys, features, places):
    """Products of queries and keys, `(B, H, T, S)`, scaled."""
    keys = repeat(layer, keys)
    if isinstance(layer, PaTHAttention):
        products = multiply_along_paths(layer, queries, keys, features)
    elif layer.encoding.reads_key_positions:
        tensors = to_tensors(queries, keys, *places)
        products = read(layer.encoding.multiply(*tensors))
    else:
        products = np.einsum("bihd,bjhd->bhij", queries, keys)
    return products / np.sqrt(layer.key_dim if layer.scale_scores else 1)


def multiply_along_paths(layer, queries, keys, features):
    """Multiplies keys by the matrices of all later tokens, one by one."""
    features = np.float64(features)
    shape = (*features.shape[:2], -1, layer.key_dim)
    maps = project(layer.direction_dense, project(layer.rank_dense, features))
    maps = maps.reshape(shape)
    mixed = np.zeros_like(maps)
    for back, kernel in enumerate(read(layer.convolution)[::-1]):
        mixed[:, back:] += kernel * maps[:, : maps.shape[1] - back]
    mixed = mixed * expit(mixed)
    square = np.sum(mixed**2, axis=-1, keepdims=True)
    directions = repeat(layer, mixed / np.sqrt(square + 1e-6))
    strengths = 2 * expit(project(layer.strength_dense, features))
    strengths = repeat(layer, strengths[..., None])
    first = keys.shape[1] - queries.shape[1]
    products = np.einsum("bihd,bjhd->bhij", queries, keys)
    moved = np.array(keys)
    for token in range(1, keys.shape[1]):
        direction = directions[:, token, None]
        along = np.sum(moved[:, :token] * direction, axis=-1, keepdims=True)
        share = strengths[:, token, None] * along
        moved[:, :token] -= share * direction
        if token >= first:
            row, seen = token - first, slice(token + 1)
            products[:, :, row, seen] = np.einsum(
                "bhd,bjhd->bhj", queries[:, row], moved[:, seen]
            )
    return products


def scale(layer, scores, query, indices, seen, bias, training):
    if layer.score_factor == "adaptive":
        slope, power = np.einsum("btm,nmh->nbht", query, read(layer.factor))
        powers = np.log(indices + 2) ** (2 * np.tanh(power))
        scores = scores * (1 + np.log1p(np.exp(slope)) * powers)[..., None]
    if layer.score_factor == "head":
        scores = scores * read(layer.factor)
    if layer.logit_soft_cap:
        cap = layer.logit_soft_cap
        scores = cap * np.tanh(scores / cap)
    shown = seen & (np.broadcast_to(bias, scores.shape) > -1e8)
    logs = np.log(np.maximum(shown.sum(-1, keepdims=True), 1))
    if layer.score_factor == "log_length":
        scores = scores * read(layer.factor) * logs
    if isinstance(layer.score_factor, LengthFactor):
        floor, slope = layer.score_factor.floor, layer.score_factor.slope
        scores = scores * (1 + slope * np.maximum(logs - np.log(floor), 0))
    if layer.train_length and not training:
        scores = scores * np.maximum(logs / np.log(layer.train_length), 1)
    return scores


def sum_gates(layer, features, indices):
    """Sums of the gates' logarithms from each key to each query."""
    gated = isinstance(layer, ForgettingAttention) or (
        isinstance(layer, PaTHAttention) and layer.use_forget_gate
    )
    if not gated:
        return 0.0
    logs = log_expit(project(layer.forget_dense, np.float64(features)))
    logs = repeat(layer, logs[..., None])[..., 0]
    sums = np.zeros((len(logs), layer.num_heads, len(indices), logs.shape[1]))
    for row, index in enumerate(indices):
        for key in range(index):
            sums[:, :, row, key] = logs[:, key + 1 : index + 1].sum(axis=1)
    scales = isinstance(layer, PaTHAttention) and layer.scale_gates
    return sums / np.sqrt(layer.key_dim if scales else 1)


def weigh(layer, scores, seen, indices):
    if isinstance(layer, StickBreakingAttention):
        return break_sticks(scores, seen, indices, layer.attend_current)
    scores = np.where(seen, scores, -1e30)
    if layer.use_sinks:
        sinks = np.broadcast_to(read(layer.sinks), (*scores.shape[:-1], 1))
        scores = np.concatenate([scores, sinks], axis=-1)
    weights = entmax(scores) if layer.use_entmax else softmax(scores, axis=-1)
    return weights[..., :-1] if layer.use_sinks else weights


def entmax(scores):
    """Weights of entmax with `alpha = 1.5`: the threshold by bisection."""
    scores = np.float64(scores) / 2
    scores = scores - scores.max(axis=-1, keepdims=True)
    high = np.zeros((*scores.shape[:-1], 1))
    low = high - 1
    for _ in range(60):
        middle = (low + high) / 2
        roots = np.maximum(scores - middle, 0)
        below = (roots**2).sum(axis=-1, keepdims=True) > 1
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.maximum(scores - high, 0) ** 2


def break_sticks(scores, seen, indices, attend_current=False):
    """Each key, from the query backwards, takes its share of what is left."""
    weights = np.zeros(scores.shape)
    seen = np.broadcast_to(seen, scores.shape)
    for row, index in enumerate(indices):
        left = np.ones(scores.shape[:2])
        for key in range(index if attend_current else index - 1, -1, -1):
            share = expit(scores[:, :, row, key]) * seen[:, :, row, key]
            weights[:, :, row, key] = left * share
            left = left * (1 - share)
        weights[:, :, row, index] += left
    return weights


def match(layer, queries, keys, features, indices, seen):
    queries = queries + read(layer.content_bias)
    logits = np.einsum("bihd,bjhd->bhij", queries, repeat(layer, keys))
    directions = project(layer.direction_dense, np.float64(features))
    earlier, later = (
        part.swapaxes(1, 2)[..., None] for part in np.split(directions, 2, -1)
    )
    before = np.arange(logits.shape[-1]) < indices[:, None]
    logits = (
        read(layer.alpha) * logits
        + read(layer.beta) * np.where(before, earlier, later)
        + read(layer.gamma)
    )
    weights = take_nearest(expit(logits) * seen, indices)
    if layer.normalize:
        weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-9)
    return weights


def take_nearest(matches, indices):
    """Weights of the probabilities of matches, from the nearest key on."""
    weights = np.zeros(matches.shape)
    keys = np.arange(matches.shape[-1])
    for row, index in enumerate(indices):
        missed = np.ones(matches.shape[:-2])
        # Of two keys at the same distance, the right one is nearer.
        for key in np.lexsort((keys < index, abs(keys - index)))[1:]:
            weights[..., row, key] = missed * matches[..., row, key]
            missed = missed * (1 - matches[..., row, key])
    return weights
