"""Calls of programs, and what is wrong with them that only a run can tell.

A program is compiled for any sizes: its right and wrong arguments differ in
sizes of axes and in numbers. The numbers are wrong in all examples, so that
all results must be NaN where an assertion does not run.
"""

import functools

import numpy as np

from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    ALiBi,
    MultiHeadAttention,
    NTKRoPE,
    RoPE,
    TransformerBlock,
)
from keras_lengen.models import EncoderDecoder, TransformerDecoder
from tests.keras_lengen.bad_inputs import (
    ATTENTION_MASKS,
    BATCH_OF_MORE,
    HEAD_SIZES,
    INF,
    MASKS,
    MORE,
    NAN,
    OTHERS,
    SIZES,
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


def of_kind(right, values):
    """The values that a program for a right one takes."""
    return [
        value
        for value in values
        if isinstance(value, np.ndarray)
        and value.ndim == right.ndim
        and value.dtype == right.dtype
        and not np.array_equal(value, right)
    ]


# In all examples, so that every result must be NaN.
FAR = integers(BATCH, TOKENS) + 2**30
ROWS_OF_POSITIONS = [
    FAR,
    integers(BATCH, MORE),
    integers(BATCH_OF_MORE, TOKENS),
]


RUN_LENGTHS = [
    np.full(BATCH, MORE, "int32"),
    np.full(BATCH, -1, "int32"),
    np.full(BATCH_OF_MORE, 2, "int32"),
    np.full(BATCH, 2**32 + 2, "int64"),
]
RUN_REFERENCE_LENGTHS = [
    *(np.full(BATCH, number, "float32") for number in (0, -3, NAN, INF)),
    np.full(BATCH_OF_MORE, 2, "float32"),
]
RUN_IDS = [
    np.full((BATCH, TOKENS), number, dtype)
    for number, dtype in (
        (-1, "int32"),
        (SIZES["vocabulary_size"], "int32"),
        (2**32, "int64"),
    )
]
RUN_INPUTS = {
    "lengths": RUN_LENGTHS,
    "padding_mask": MASKS,
    "positions": ROWS_OF_POSITIONS,
    "reference_length": RUN_REFERENCE_LENGTHS,
}


def encoding_programs(variant):
    """An encoding, in attention to the same and to other tokens."""
    encoding = encodings.make(variant)
    idle = ("positions", "key_positions")
    if encodings.row_of(variant).uses_positions:
        idle = ()
    if encoding.stage == "embeddings":
        yield Call(
            variant,
            lambda embeddings, **others: encoding(embeddings, **others),
            {
                "embeddings": floats(BATCH, TOKENS, MODEL_DIM),
                "positions": integers(BATCH, TOKENS),
            },
            {"positions": ROWS_OF_POSITIONS},
            idle,
        )
        return
    attention = MultiHeadAttention(**HEAD_SIZES, encoding=encoding)
    query = floats(BATCH, TOKENS, MODEL_DIM)
    yield Call(
        variant,
        lambda query, **others: attention(
            query, query, use_causal_mask=True, **others
        ),
        {"query": query, "positions": integers(BATCH, TOKENS)},
        {"positions": ROWS_OF_POSITIONS},
        idle,
    )
    if encoding.reads_inputs:
        return
    yield Call(
        f"{variant} to others",
        functools.partial(attention, use_causal_mask=True),
        {
            "query": query,
            "value": floats(BATCH, OTHERS, MODEL_DIM),
            "positions": integers(TOKENS),
            "key_positions": integers(OTHERS),
        },
        {
            "positions": [FAR[0], integers(MORE)],
            "key_positions": [integers(OTHERS) + 2**30, integers(MORE)],
        },
        idle,
    )


def short_programs(name):
    """Decoders of an encoding with fewer positions than tokens."""
    evaluations = [{}]
    if name != "LearnedEncoding":
        evaluations = [
            {"evaluation": evaluation}
            for evaluation in ("random", "even", "ordinal")
        ]
    for evaluation in evaluations:
        encoding = encodings.make(name, max_position=TOKENS, **evaluation)
        model = TransformerDecoder(**SIZES, encoding=encoding)
        yield Call(
            f"{name} with {evaluation}",
            lambda token_ids, model=model: model(token_ids),
            {"token_ids": integers(BATCH, TOKENS)},
            {("token_ids", "max_position"): [integers(BATCH, MORE) % TOKENS]},
        )


def mask_programs():
    """Attentions with masks and lengths."""
    query = floats(BATCH, TOKENS, MODEL_DIM)
    mask = np.ones((BATCH, TOKENS), bool)
    mask[0, -1] = False
    for name, cls in ATTENTIONS.items():
        encoding = NTKRoPE(original_length=4)
        if name == "GeometricAttention":
            encoding = None
        attention = cls(**HEAD_SIZES, encoding=encoding)
        for axes in (2, 3, 4) if encoding else (2,):
            shape = (BATCH, HEADS, TOKENS, TOKENS)[-axes:]
            if axes == 3:
                shape = (BATCH, TOKENS, TOKENS)
            right = {
                "query": query,
                "attention_mask": np.ones(shape, bool),
                "query_mask": mask,
                "value_mask": mask,
                "length": np.array([6, 7], "float32"),
            }
            yield Call(
                f"{name} with {axes} axes of masks",
                lambda query, attention=attention, **others: attention(
                    query, query, **others
                ),
                right,
                {
                    argument: of_kind(right[argument], values)
                    for argument, values in (
                        ("attention_mask", ATTENTION_MASKS),
                        ("query_mask", MASKS),
                        ("value_mask", MASKS),
                        ("length", RUN_REFERENCE_LENGTHS),
                    )
                    if (axes == 2 or argument == "attention_mask")
                    and (encoding or argument != "length")
                },
            )


def other_programs():
    """Attention to the tokens of another sequence."""
    query = floats(BATCH, TOKENS, MODEL_DIM)
    attention = MultiHeadAttention(**HEAD_SIZES, encoding=ALiBi())
    yield Call(
        "attention to others",
        attention,
        {
            "query": query,
            "value": floats(BATCH, OTHERS, MODEL_DIM),
            "key": floats(BATCH, OTHERS, MODEL_DIM),
            "positions": integers(TOKENS),
            "key_positions": integers(OTHERS),
        },
        {
            "value": [
                floats(BATCH, TOKENS, MODEL_DIM),
                floats(1, OTHERS, MODEL_DIM),
            ],
            "key": [
                floats(BATCH, TOKENS, MODEL_DIM),
                floats(1, OTHERS, MODEL_DIM),
            ],
            ("query", "query"): [floats(1, TOKENS, MODEL_DIM)],
        },
    )
    causal = MultiHeadAttention(**HEAD_SIZES)
    yield Call(
        "causal attention to others",
        functools.partial(causal, use_causal_mask=True),
        {"query": query, "value": floats(BATCH, OTHERS, MODEL_DIM)},
        {("query", "use_causal_mask"): [floats(BATCH, OTHERS + 1, MODEL_DIM)]},
    )


def cache_programs():
    """Attention with a cache, whose weights are returned or not."""
    query = floats(BATCH, TOKENS, MODEL_DIM)
    attention = MultiHeadAttention(**HEAD_SIZES, encoding=ALiBi())
    for scores in (False, True):
        yield Call(
            f"attention with a cache, {scores=}",
            lambda query, scores=scores, **others: attention(
                query,
                query,
                use_causal_mask=True,
                return_attention_scores=scores,
                **others,
            )[: 1 + scores],
            {
                "query": query,
                "key_positions": integers(2 * TOKENS),
                "cache": tuple(
                    floats(BATCH, 2 * TOKENS, HEADS, WIDTH) for _ in range(2)
                ),
                "cache_update_index": np.array(2, "int32"),
                "value_mask": np.ones((BATCH, 2 * TOKENS), bool),
            },
            {
                "cache_update_index": [
                    np.array(index, "int32")
                    for index in (-3, -1, TOKENS + 1, 2 * TOKENS)
                ],
                "key_positions": [
                    integers(TOKENS),
                    integers(2 * TOKENS) + 2**30,
                ],
                "value_mask": [np.ones((BATCH, TOKENS), bool)],
                "cache": [
                    tuple(floats(*shape) for shape in shapes)
                    for shapes in (
                        [(1, 2 * TOKENS, HEADS, WIDTH)] * 2,
                        [
                            (BATCH, 2 * TOKENS, HEADS, WIDTH),
                            (BATCH, 2 * TOKENS + 1, HEADS, WIDTH),
                        ],
                    )
                ],
            },
        )


def block_program():
    """A block that attends to another sequence."""
    block = TransformerBlock(
        HEADS, encoding=RoPE(), cross_attention=True, cross_encoding=ALiBi()
    )
    right = {
        "inputs": floats(BATCH, TOKENS, MODEL_DIM),
        "memory": floats(BATCH, OTHERS, MODEL_DIM),
        "mask": np.ones((BATCH, TOKENS), bool),
        "memory_mask": np.ones((BATCH, OTHERS), bool),
        "positions": integers(TOKENS),
        "memory_positions": integers(OTHERS),
    }
    yield Call(
        "TransformerBlock",
        lambda inputs, **others: block(inputs, **others),
        right,
        {
            "memory": [
                floats(1, OTHERS, MODEL_DIM),
                floats(BATCH_OF_MORE, OTHERS, MODEL_DIM),
            ],
            "mask": of_kind(right["mask"], MASKS),
            "memory_mask": of_kind(right["memory_mask"], MASKS),
            "positions": [integers(MORE), FAR[0]],
            "memory_positions": [
                integers(TOKENS),
                integers(OTHERS) + 2**30,
            ],
        },
    )


def model_programs(name, prefix=""):
    """A model with lengths, masks and positions, of source or target."""
    cls, arguments = CLASSES[name]
    model = cls(**arguments, encoding=NTKRoPE(original_length=4))
    for dtype, given in (
        (
            "int32",
            {
                "lengths": np.array([2, 3], "int32"),
                "positions": integers(BATCH, TOKENS),
                "reference_length": np.array([6, 7], "float32"),
            },
        ),
        ("int32", {"padding_mask": np.ones((BATCH, TOKENS), bool)}),
        ("int64", {"lengths": np.array([2, 3], "int64")}),
    ):
        if dtype == "int64" and cls is EncoderDecoder:
            continue  # As in its two parts.
        right = {"token_ids": integers(BATCH, TOKENS)}
        if cls is EncoderDecoder:
            right["target_ids"] = integers(BATCH, TOKENS)
        ids = prefix + "ids" if prefix else "token_ids"
        right[ids] = right[ids].astype(dtype)
        right.update({prefix + key: value for key, value in given.items()})
        yield Call(
            f"{name} with {dtype} {', '.join(right)}",
            lambda **inputs: model(inputs),
            right,
            {
                ids: of_kind(right[ids], RUN_IDS),
                **{
                    prefix + key: of_kind(value, RUN_INPUTS[key])
                    for key, value in given.items()
                },
            },
        )


def memory_program():
    """A decoder that attends to a memory."""
    model = TransformerDecoder(
        **SIZES, cross_attention=True, cross_encoding=ALiBi()
    )
    memory = floats(BATCH, OTHERS, MODEL_DIM)
    right = {
        "token_ids": integers(BATCH, TOKENS),
        "memory": memory,
        "memory_mask": np.ones((BATCH, OTHERS), bool),
        "memory_positions": integers(OTHERS),
    }
    yield Call(
        "TransformerDecoder with memory",
        lambda **inputs: model(inputs),
        right,
        {
            "memory": [memory[:1], floats(BATCH_OF_MORE, OTHERS, MODEL_DIM)],
            "memory_mask": of_kind(right["memory_mask"], MASKS),
            "memory_positions": [integers(TOKENS), integers(OTHERS) + 2**30],
        },
    )


def sampler_programs(name):
    """A sampler, in training and not."""
    cls, arguments = CLASSES[name]
    sampler = cls(**arguments)
    right = {
        "inputs": floats(BATCH, TOKENS),
        "lengths": np.array([2, 3], "int32"),
        "reference_length": np.array([6, 7], "float32"),
    }
    for training in (False, True):
        wrong = {"lengths": of_kind(right["lengths"], RUN_LENGTHS)}
        if name == "InterpolatedPositions":
            wrong["reference_length"] = RUN_REFERENCE_LENGTHS
        yield Call(
            f"{name} with {training=}",
            lambda inputs, training=training, **others: sampler(
                inputs, training=training, **others
            ),
            right,
            wrong,
        )


PROGRAMS = {
    **{
        f"{name} in attention": functools.partial(encoding_programs, name)
        for name in encodings.VARIANTS
    },
    **{
        f"{name} of few positions": functools.partial(short_programs, name)
        for name in ENCODINGS
        if encodings.ROWS[name].longest is not None
    },
    **{
        name: functools.partial(sampler_programs, name)
        for name in (*SAMPLERS, "GridPositions")
    },
    "masks": mask_programs,
    "attention to others": other_programs,
    "caches": cache_programs,
    "TransformerBlock": block_program,
    **{
        name: functools.partial(model_programs, name)
        for name in (
            "TransformerEncoder",
            "TransformerDecoder",
            "EncoderDecoder",
        )
    },
    "target": functools.partial(model_programs, "EncoderDecoder", "target_"),
    "memory": memory_program,
}
"""What makes the calls of each group."""
