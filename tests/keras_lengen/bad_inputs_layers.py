"""Bad arguments of the calls of encodings, samplers, attentions, blocks."""

import functools

import numpy as np

from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    TOKEN_SAMPLERS,
    ALiBi,
    AxialEncoding,
    RoPE,
    SinusoidalEncoding,
    TransformerBlock,
)
from tests.keras_lengen.bad_inputs import (
    ATTENTION_MASKS,
    BATCH_OF_MORE,
    FEATURES,
    FLAGS,
    HEAD_SIZES,
    INDICES,
    LENGTHS,
    MASKS,
    MORE,
    NAN,
    NO_TENSORS,
    OTHERS,
    POSITIONS,
    REFERENCE_LENGTHS,
    Call,
    floats,
    integers,
)
from tests.keras_lengen.bad_inputs_constructors import CLASSES
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.encodings.table import (
    BATCH,
    HEADS,
    MODEL_DIM,
    TOKENS,
    WIDTH,
)


def encoding_calls(name):
    """Calls of an encoding as a layer, and with positions from its sampler."""
    encoding = encodings.make_built(name)
    first = "embeddings" if encoding.stage == "embeddings" else "query"
    if encoding.stage is not None:
        yield Call(
            f"new {name}",
            lambda features: _encode(encodings.make(name))(**{first: features}),
            {"features": encodings.random_inputs(encoding.stage)[0]},
            {("features", first): FEATURES},
        )
    inputs = encodings.random_inputs(encoding.stage)
    positions = integers(BATCH, TOKENS)
    if encoding.stage == "embeddings":
        right = {"embeddings": inputs[0]}
        wrong = {
            "embeddings": [
                *FEATURES,
                floats(BATCH, TOKENS, HEADS, WIDTH),
                floats(BATCH, TOKENS, MODEL_DIM + 2),
                floats(BATCH, TOKENS, MODEL_DIM - 1),
            ],
            "start_index": INDICES,
            "mask": MASKS,
        }
        yield Call(name, _encode(encoding), right, wrong)
        right["positions"] = positions
        wrong = {"positions": POSITIONS, "mask": MASKS}
        yield Call(f"{name} with positions", _encode(encoding), right, wrong)
        return
    right = {"query": inputs[0]}
    queries = [*FEATURES, floats(BATCH, TOKENS, HEADS, WIDTH + 2)]
    wrong = {
        "query": queries,
        "key_positions": [positions],
        "start_index": INDICES,
    }
    if encoding.stage == "rotation":
        wrong["length"] = REFERENCE_LENGTHS
    if encoding.stage == "bias":
        wrong["causal"] = FLAGS
        queries.append(floats(BATCH, TOKENS, HEADS + 1, WIDTH))
    if encoding.stage is None:
        # It changes nothing, whatever it is given.
        queries[:] = []
    yield Call(name, _encode(encoding), right, wrong)
    right.update(key=inputs[1], positions=positions, key_positions=positions)
    wrong = {
        "positions": POSITIONS,
        "key_positions": POSITIONS,
        "key": [
            *FEATURES,
            inputs[1][:1],
            floats(BATCH_OF_MORE, TOKENS, HEADS, WIDTH),
            floats(BATCH, TOKENS, HEADS, WIDTH + 2),
            floats(BATCH, TOKENS, HEADS + 1, WIDTH),
        ],
        ("key", "key_positions"): [floats(BATCH, MORE, HEADS, WIDTH)],
    }
    if encoding.stage is None:
        wrong["key"] = NO_TENSORS
    yield Call(f"{name} with a key", _encode(encoding), right, wrong)


def _encode(encoding):
    def encode(query=None, key=None, embeddings=None, **others):
        first = query if embeddings is None else embeddings
        return encoding(first, *([] if key is None else [key]), **others)

    return encode


def axial_calls(stage):
    """Calls of two encodings of a stage in one."""
    cls = {"embeddings": SinusoidalEncoding, "rotation": RoPE, "bias": ALiBi}
    encoding = AxialEncoding(row=cls[stage](), column=cls[stage]())
    pair = (integers(TOKENS), integers(BATCH, TOKENS))
    features = encodings.random_inputs(stage)
    others = {
        "embeddings": {"mask": MASKS},
        "rotation": {"length": REFERENCE_LENGTHS},
        "bias": {"causal": FLAGS},
    }
    yield Call(
        f"AxialEncoding of {stage}",
        lambda features, **others: encoding(features, **others),
        {"features": features[0], "positions": pair},
        {
            ("features", "query|embeddings"): FEATURES,
            "positions": [
                integers(TOKENS),
                integers(2, TOKENS),
                (integers(TOKENS), integers(TOKENS), integers(TOKENS)),
                *((pair[0], bad) for bad in POSITIONS),
                *((bad, pair[1]) for bad in POSITIONS),
            ],
            **others[stage],
        },
    )


NO_IDS = [
    integers(TOKENS),
    integers(BATCH, TOKENS, 1),
    floats(BATCH, TOKENS),
    np.full((BATCH, TOKENS), NAN),
    integers(BATCH, TOKENS) > 0,
    integers(BATCH, TOKENS).astype("complex64"),
    np.full((BATCH, TOKENS), 2**40),
    np.full((BATCH, TOKENS), 2**63, "uint64"),
]
"""What samplers that read token ids cannot read."""


def sampler_calls(name):
    """Calls of a sampler, in training and not."""
    cls, arguments = CLASSES[name]
    sampler = cls(**arguments)
    for training in (False, True):
        yield Call(
            f"{name} with {training=}",
            lambda inputs, training=training, **others: sampler(
                inputs, training=training, **others
            ),
            {
                "inputs": integers(BATCH, TOKENS)
                if sampler.reads_tokens
                else floats(BATCH, TOKENS)
            },
            {
                "inputs": [
                    *(*NO_TENSORS, None, 3, [[1, 2]], [[1, 2], [3]], []),
                    floats(TOKENS),
                    np.full((BATCH, TOKENS), "x"),
                    np.full((BATCH, TOKENS), None),
                    *(NO_IDS if sampler.reads_tokens else ()),
                ],
                "lengths": LENGTHS,
                "reference_length": REFERENCE_LENGTHS,
            },
        )


def attention_calls(name):
    """Calls of an attention to itself, to others, and with a cache."""
    attention = ATTENTIONS[name](**HEAD_SIZES)

    def attend(query, *own, **others):
        others.setdefault("use_causal_mask", attention.causal_only)
        own = own or ([] if "value" in others else [query])
        return attention(query, *own, **others)

    query = floats(BATCH, TOKENS, MODEL_DIM)
    attend(query)
    positions = integers(BATCH, TOKENS)
    queries = [*FEATURES, floats(BATCH, TOKENS, MODEL_DIM + 1)]
    yield Call(
        name,
        attend,
        {"query": query, "positions": positions},
        {
            "query": queries,
            "positions": POSITIONS,
            "attention_mask": ATTENTION_MASKS,
            "query_mask": MASKS,
            "value_mask": MASKS,
            "key_mask": MASKS,
            "length": REFERENCE_LENGTHS,
            "use_causal_mask": FLAGS,
            "return_attention_scores": FLAGS,
            "self_attention": [flag for flag in FLAGS if flag is not None],
            "cache_update_index": [0, "x", True],
        },
    )
    if name == "GeometricAttention" or attention.causal_only:
        return
    yield Call(
        f"{name} to others",
        attend,
        {
            "query": query,
            "value": floats(BATCH, OTHERS, MODEL_DIM),
            "key": floats(BATCH, OTHERS, MODEL_DIM),
            "positions": positions,
            "key_positions": integers(BATCH, OTHERS),
        },
        {
            "value": [
                *queries,
                floats(1, OTHERS, MODEL_DIM),
                floats(BATCH_OF_MORE, OTHERS, MODEL_DIM),
                floats(BATCH, TOKENS, MODEL_DIM),
                floats(BATCH, 0, MODEL_DIM),
                None,
            ],
            "key": [
                *queries,
                floats(1, OTHERS, MODEL_DIM),
                floats(BATCH_OF_MORE, OTHERS, MODEL_DIM),
                floats(BATCH, TOKENS, MODEL_DIM),
                floats(BATCH, 0, MODEL_DIM),
            ],
            "query": [
                None,
                floats(1, TOKENS, MODEL_DIM),
                floats(BATCH_OF_MORE, TOKENS, MODEL_DIM),
                floats(0, TOKENS, MODEL_DIM),
            ],
            "positions": [integers(MORE)],
            "key_positions": POSITIONS,
            "value_mask": MASKS,
        },
    )
    more = floats(BATCH, OTHERS + 1, MODEL_DIM)
    yield Call(
        f"causal {name} to others",
        lambda query, **others: attend(
            query, positions=np.arange(query.shape[1]), **others
        ),
        {
            "query": query,
            "value": floats(BATCH, OTHERS, MODEL_DIM),
            "key_positions": integers(OTHERS),
            "use_causal_mask": True,
        },
        {("query", "use_causal_mask"): [more]},
    )
    slots = 2 * TOKENS
    cache = tuple(floats(BATCH, slots, HEADS, WIDTH) for _ in range(2))
    yield Call(
        f"{name} with a cache",
        attend,
        {
            "query": query,
            "key_positions": integers(slots),
            "use_causal_mask": True,
            "cache": cache,
            "cache_update_index": 2,
        },
        {
            "cache_update_index": [
                *(index for index in INDICES if index is not None),
                -3,
                slots - TOKENS + 1,
                slots,
            ],
            "cache": [
                *NO_TENSORS,
                3,
                (),
                cache[:1],
                (cache[0], "x"),
                (cache[0], None),
                *((cache[0], floats(*shape)) for shape in _wrong_caches(slots)),
                *((floats(*shape), cache[1]) for shape in _wrong_caches(slots)),
            ],
            "positions": [integers(TOKENS - 1), integers(slots), "x"],
            "key_positions": [integers(TOKENS), "x", [1]],
            "value_mask": MASKS,
            "attention_mask": ATTENTION_MASKS,
        },
    )


def _wrong_caches(slots):
    return (
        (BATCH, slots),
        (1, slots, HEADS, WIDTH),
        (BATCH_OF_MORE, slots, HEADS, WIDTH),
        (BATCH, slots + 1, HEADS, WIDTH),
        (BATCH, slots, HEADS + 1, WIDTH),
        (BATCH, slots, HEADS, WIDTH + 1),
        (BATCH, slots, 1, WIDTH),
    )


def block_calls():
    """Calls of a block, with attention to another sequence and without."""
    inputs = floats(BATCH, TOKENS, MODEL_DIM)
    memory = floats(BATCH, OTHERS, MODEL_DIM)
    inputs_of = [*FEATURES, floats(BATCH, TOKENS, MODEL_DIM + 1)]
    for normalization in ("post", "pre"):
        block = TransformerBlock(
            HEADS, encoding=RoPE(), normalization=normalization
        )
        block(inputs)
        yield Call(
            f"TransformerBlock, {normalization}",
            lambda inputs, block=block, **others: block(inputs, **others),
            {"inputs": inputs, "positions": integers(TOKENS)},
            {
                "inputs": inputs_of,
                "positions": POSITIONS,
                "attention_mask": ATTENTION_MASKS,
                "mask": MASKS,
                "length": REFERENCE_LENGTHS,
                "memory": [memory],
                "memory_mask": [np.ones((BATCH, OTHERS), bool)],
                "memory_positions": [integers(OTHERS)],
                "cache": [*NO_TENSORS, 3, {"attention": None}, {"x": 1}],
                "cache_update_index": [0, "x"],
            },
        )
    block = TransformerBlock(
        HEADS, encoding=RoPE(), cross_attention=True, cross_encoding=ALiBi()
    )
    block.build(inputs.shape, memory.shape)
    yield Call(
        "TransformerBlock with memory",
        lambda inputs, **others: block(inputs, **others),
        {
            "inputs": inputs,
            "memory": memory,
            "positions": integers(TOKENS),
            "memory_positions": integers(OTHERS),
        },
        {
            "memory": [
                *inputs_of,
                None,
                floats(1, OTHERS, MODEL_DIM),
                floats(BATCH_OF_MORE, OTHERS, MODEL_DIM),
            ],
            "memory_mask": MASKS,
            "memory_positions": POSITIONS,
        },
    )
    yield Call(
        "TransformerBlock.make_cache",
        block.make_cache,
        {"batch_size": BATCH, "length": TOKENS, "memory": memory},
        {
            "batch_size": [*NO_TENSORS, None, 0, -1, 2.5, NAN, True],
            "length": [*NO_TENSORS, None, 0, -1, 2.5, NAN, True],
            "memory": [*NO_TENSORS, None, 3, memory[0]],
        },
    )


CALLS = {
    **{name: functools.partial(encoding_calls, name) for name in ENCODINGS},
    **{
        f"AxialEncoding of {stage}": functools.partial(axial_calls, stage)
        for stage in ("embeddings", "rotation", "bias")
    },
    **{
        name: functools.partial(sampler_calls, name)
        for name in (*SAMPLERS, *TOKEN_SAMPLERS, "GridPositions")
    },
    **{name: functools.partial(attention_calls, name) for name in ATTENTIONS},
    "TransformerBlock": block_calls,
}
"""What makes the calls of each group of layers."""
