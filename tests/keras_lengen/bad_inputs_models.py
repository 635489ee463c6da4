"""Bad inputs of the models and bad options of their `generate`."""

import functools

import numpy as np

from keras_lengen.layers import ALiBi, RoPE
from keras_lengen.models import (
    EncoderDecoder,
    LoopedDecoder,
    TransformerDecoder,
)
from tests.keras_lengen.bad_inputs import (
    BATCH_OF_MORE,
    FEATURES,
    FLAGS,
    INF,
    LENGTHS,
    MASKS,
    NAN,
    NO_TENSORS,
    OTHERS,
    POSITIONS,
    REFERENCE_LENGTHS,
    SIZES,
    TOKEN_IDS,
    Call,
    floats,
    integers,
)
from tests.keras_lengen.bad_inputs_constructors import CLASSES
from tests.keras_lengen.layers.encodings.table import BATCH, MODEL_DIM, TOKENS

LOOPS = {
    "loops": [
        *(*NO_TENSORS, 0, -1, 2.5, NAN, True, 2**40, [], [1, 2.5], [[2], [2]]),
        *([2] * BATCH_OF_MORE, [2, 0], ["x", "x"], [[1], [1, 2]]),
        np.full(BATCH, 2, "complex64"),
        np.full(BATCH, None),
    ],
    "scored": MASKS,
}
"""Wrong values of the further inputs of `LoopedDecoder`."""


def model_calls(name):
    """Calls of a model."""
    cls = CLASSES[name][0]
    model = cls(**CLASSES[name][1], encoding=RoPE())
    prefixes = [""]
    right = {"token_ids": integers(BATCH, TOKENS)}
    if cls is EncoderDecoder:
        prefixes.append("target_")
        right["target_ids"] = integers(BATCH, TOKENS)

    def call(inputs=None, **others):
        return model(others if inputs is None else inputs)

    yield Call(
        name,
        call,
        right,
        {
            **{
                wanted: values
                for prefix in prefixes
                for wanted, values in model_inputs(prefix).items()
            },
            **{
                unknown: [1]
                for unknown in (
                    "lenghts",
                    "mask",
                    "target_lenghts",
                    "target_token_ids",
                    "target_memory",
                    "memory_masks",
                    "x",
                )
            },
            ("inputs", "inputs|token_ids"): [*NO_TENSORS, 3, {"x": 1}, {1: 2}],
            **(LOOPS if cls is LoopedDecoder else {}),
        },
    )
    if cls is EncoderDecoder:
        wrong = {"token_ids": [integers(BATCH, TOKENS)[:, :0]]}
        yield Call(f"{name} without a source", call, right, wrong)
    for prefix in prefixes:
        yield Call(
            f"{name} with {prefix}lengths",
            call,
            {**right, f"{prefix}lengths": np.array([2, 3])},
            {f"{prefix}padding_mask": [np.ones((BATCH, TOKENS), bool)]},
        )


def model_inputs(prefix):
    """Wrong values of the inputs of a model, by their names."""
    return {
        (f"{prefix}ids" if prefix else "token_ids"): TOKEN_IDS,
        f"{prefix}positions": POSITIONS,
        f"{prefix}lengths": LENGTHS,
        f"{prefix}padding_mask": MASKS,
        f"{prefix}reference_length": REFERENCE_LENGTHS,
    }


def memory_calls():
    """Calls of a decoder that attends to a memory."""
    model = TransformerDecoder(
        **SIZES, encoding=RoPE(), cross_attention=True, cross_encoding=ALiBi()
    )
    memory = floats(BATCH, OTHERS, MODEL_DIM)
    yield Call(
        "TransformerDecoder with memory",
        lambda **inputs: model(inputs),
        {"token_ids": integers(BATCH, TOKENS), "memory": memory},
        {
            "memory": [
                *FEATURES,
                None,
                memory[:1],
                memory[:, :0],
                floats(BATCH_OF_MORE, OTHERS, MODEL_DIM),
                floats(BATCH, TOKENS, MODEL_DIM + 1),
            ],
            "memory_mask": MASKS,
            "memory_positions": POSITIONS,
        },
    )


GENERATE = {
    "max_new_tokens": [*NO_TENSORS, None, 0, -1, 2.5, NAN, True, [1]],
    "temperature": [
        *(*NO_TENSORS, None, -1, NAN, INF, True, [1.0]),
        *(1e-38, 1e-46, 1e39, 10**400),
    ],
    "top_k": [*NO_TENSORS, 0, -1, 8, 2.5, NAN, True, [1]],
    "top_p": [*NO_TENSORS, 0, -1, 1.5, NAN, INF, True, [0.5]],
    "end_token": [*NO_TENSORS, -1, 7, 2.5, NAN, True, [], [1, 7], [[1]]],
    "repetition_penalty": [*NO_TENSORS, None, 0, -1, NAN, INF, True, [1.0]],
    "num_beams": [*NO_TENSORS, None, 0, -1, 2, 2.5, NAN, True, [1]],
    "length_penalty": [*NO_TENSORS, None, 0.5, -1, NAN, INF, True, [1.0]],
    "seed": [*NO_TENSORS, -1, 2.5, NAN, True, 2**40, [1]],
    "jit_compile": FLAGS,
    "return_logits": FLAGS,
}
"""Wrong values of the options of `generate`."""


def generate_calls(name):
    """Calls of `generate` and `stream`."""
    cls, arguments = CLASSES[name]
    model = cls(**{**arguments, "output_size": None}, encoding=RoPE())
    right = {"token_ids": integers(BATCH, TOKENS)}
    own, own_ids, prefixes = "", "token_ids", [""]
    if cls is EncoderDecoder:
        own, own_ids, prefixes = "target_", "target_ids", ["", "target_"]
        right["target_ids"] = integers(BATCH, TOKENS)

    def generate(method, max_new_tokens=3, **others):
        chosen = {"temperature": 1.0, "jit_compile": False}
        for option in GENERATE.keys() & others.keys():
            chosen[option] = others.pop(option)
        inputs = others.pop("inputs", others)
        result = getattr(model, method)(inputs, max_new_tokens, **chosen)
        return result if method == "generate" else next(result)

    for method in ("generate", "stream"):
        options = dict(GENERATE)
        if method == "stream":
            del options["return_logits"]
        yield Call(
            f"{name}.{method}",
            functools.partial(generate, method),
            right,
            {
                **options,
                **{
                    wanted: values
                    for prefix in prefixes
                    for wanted, values in model_inputs(prefix).items()
                },
                # Nothing to start from.
                (own_ids, own_ids): [
                    np.zeros((BATCH, 0), "int32"),
                    np.zeros((0, TOKENS), "int32"),
                ],
                (f"{own}lengths", f"{own}lengths"): [[0, 2]],
                (f"{own}padding_mask", f"{own}padding_mask"): [
                    np.zeros((BATCH, TOKENS), bool)
                ],
                ("inputs", "inputs|token_ids"): [*NO_TENSORS, None, 3],
                "lenghts": [1],
                f"{own}lenghts": [1],
            },
        )


CALLS = {
    **{
        name: functools.partial(model_calls, name)
        for name in (
            "TransformerEncoder",
            "TransformerDecoder",
            "LoopedDecoder",
            "EncoderDecoder",
        )
    },
    "TransformerDecoder with memory": memory_calls,
    **{
        f"{name}.generate": functools.partial(generate_calls, name)
        for name in ("TransformerDecoder", "EncoderDecoder")
    },
}
"""What makes the calls of each group of models."""
