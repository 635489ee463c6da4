"""Wrong values of inputs, by the reader of the input, and how they are refused.

Where a call knows that a value is wrong it raises `ValueError`. Where only a
run of a program knows, TensorFlow's ends with an assertion, and programs of XLA
and JAX, which have none, return nothing but NaN.
"""

import re

import keras
import numpy as np

from keras_lengen.checks.constructors import constructor_arguments
from keras_lengen.checks.guards import INVALID_POSITION

BATCH, TOKENS, OTHERS, HEADS, WIDTH = 2, 6, 9, 2, 8
MODEL_DIM = HEADS * WIDTH
SIZES = {
    "vocabulary_size": 7,
    "output_size": 3,
    "num_layers": 1,
    "num_heads": HEADS,
    "model_dim": MODEL_DIM,
    "feedforward_dim": 8,
}
HEAD_SIZES = {"num_heads": HEADS, "key_dim": WIDTH}
NAN, INF = float("nan"), float("inf")


def complete(cls, arguments):
    """Arguments of a class, and examples of the others that it needs."""
    needed = {
        name: cls.arguments()[name].examples[0]
        for name, parameter in constructor_arguments(cls).items()
        if parameter.default is parameter.empty and name not in arguments
    }
    return {**needed, **arguments}


def make(cls, **arguments):
    """An object of a class, by the examples of the arguments it needs."""
    if "max_position" in cls.arguments():
        arguments = {"max_position": 64, **arguments}
    return cls(**complete(cls, arguments))


def floats(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def integers(*shape, dtype="int32"):
    """0, 1, 2, ... along the last axis."""
    return np.array(np.broadcast_to(np.arange(shape[-1]), shape), dtype)


def truth(*shape):
    return np.ones(shape, bool)


def changed(array, value, dtype=None):
    """A copy of an array whose first entry is something else."""
    array = np.array(array, dtype)
    array.flat[0] = value
    return array


def more(array, axis):
    """An array with one more row."""
    return np.concatenate([array, array.take([0], axis)], axis)


NOT_NUMBERS = [
    *("x", object(), {}, [[1, 0], [1], [1]]),
    np.full((BATCH, TOKENS), "x"),
    np.array([[object()] * TOKENS] * BATCH),
    np.ones((BATCH, TOKENS), "complex64"),
]
"""What no input may be."""

IDS, MASK = integers(BATCH, TOKENS), truth(BATCH, TOKENS)
SIZES_OF_ROWS = [
    ("got 1 for 6 tokens", MASK[:, :1]),
    ("got 3 for 2 examples", more(MASK, 0)),
    ("got 1 for 2 examples", MASK[:1]),
    ("got 7 for 6 tokens", more(MASK, 1)),
]
"""Wrong sizes of what has an entry for each token."""

WRONG = {
    "positions": [
        (r"have shape .*; got \(\)\.", 3),
        (r"must be numbers of shape \(T,\) or \(B, T\); got", [True] * TOKENS),
        (r"have shape .*; got \(1, 2, 6\)\.", IDS[None]),
        ("each token: got 1 for 6", [[3]]),
        ("each token: got 7 for 6", more(IDS, 1)),
        ("got 3 rows for a batch of 2", more(IDS, 0)),
        ("finite .* got .*nan", changed(integers(TOKENS), NAN, "float32")),
        ("finite .* got .* to inf", changed(integers(TOKENS), INF, "float32")),
        ("got .* from 1.* to 16777217", changed(integers(TOKENS), 2**24 + 1)),
        ("got .* from -16777217", changed(integers(TOKENS), -(2**24) - 1)),
        ("got int64 of shape", changed(integers(TOKENS), 2**40, "int64")),
    ],
    "lengths": [
        ("from 0 to the 6 tokens .* got 7", 7),
        (r"must be integers of shape \(\) or \(B,\); got", [True, True]),
        (r"must be integers of shape \(\) or \(B,\); got", 2**40),
        ("must be integers, the true .* got float", [2, 2.5]),
        ("from 0 to the 6 tokens .* got -1", -1),
        (r"got \[2 7\]", np.array([2, 7], "uint8")),
        ("got 3 for a batch of 2", [2, 2, 2]),
        (r"must have shape \(\) or \(B,\); got \(2, 1\)", [[2], [2]]),
    ],
    "reference_length": [
        ("must be above 0; got 0", 0),
        (r"must be numbers of shape \(\) or \(B,\); got", True),
        ("must be above 0; got -1", np.array(-1.0)),
        ("must be above 0; got nan", NAN),
        ("must be above 0; got inf", INF),
        (r"must be above 0; got \[2. 0.\]", [2, 0]),
        ("got 3 for a batch of 2", [2, 2, 2]),
        (r"must have shape \(\) or \(B,\); got \(1, 2\)", [[2, 2]]),
    ],
    "mask": [
        (r"must have shape \(B, T\); got \(\)", True),
        (r"must have shape \(B, T\); got \(2, 6, 1\)", MASK[..., None]),
        *SIZES_OF_ROWS,
        # What other libraries add to scores.
        (
            "got float32: pass a comparison, mask == 0 for .* mask > 0 for",
            np.full(MASK.shape, -1e9, "float32"),
        ),
        ("got integers from -10000 to", np.full(MASK.shape, -10000)),
        ("got integers from 2 to", np.full(MASK.shape, 2, "uint8")),
    ],
    "segment_ids": [
        (r"must have shape \(B, T\); got \(\)", 3),
        (r"must be integers of shape \(B, T\), the document .*; got", MASK),
        (r"must be integers of shape .*; got float32", MASK.astype("float32")),
        *((words, value.astype("int32")) for words, value in SIZES_OF_ROWS),
    ],
    "token_ids": [
        (r"must have shape \(B, T\); got \(\)", 3),
        (r"must have shape \(B, T\); got \(2, 6, 1\)", IDS[..., None]),
        (r"must be integers of shape", np.full(IDS.shape, 2**63, "uint64")),
        (r"must be integers of shape", changed(IDS, 2**40, "int64")),
        ("must be integers; got bool: cast", MASK),
        ("must be integers; got float32: cast", [[1.0, 2.0]]),
        ("from 0 to 6, below vocabulary_size; got ids from 2 to 7", IDS + 2),
        ("from 0 to 6, below vocabulary_size; got ids from -1 to 4", IDS - 1),
    ],
    "index": [
        ("must be an integer from 0 to 16777216, or a scalar .* one; got", each)
        for each in (-1, 2.5, True, 2**24 + 1, integers(BATCH), np.array(1.0))
    ],
    "loops": [
        ("must be at least 1 and below", [2, 0]),
        (r"must be integers of shape \(\) or \(B,\)", [1, 2.5]),
        (r"got int.* of shape \(2, 1\)", np.ones((2, 1), int)),
        ("must have the same batch size; got 3 and 2", [2, 2, 2]),
    ],
    "features": [
        ("must have shape", floats(TOKENS, MODEL_DIM)),
        ("must be a tensor", [[1.0]]),
    ],
}
"""By the reader of an input, words of its messages and what they refuse."""


def beyond(array):
    """Numbers so large that only their lower bits are right."""
    return array + 2 ** (32 if array.itemsize == 8 else 30)


def sizes(*axes):
    return lambda array: [
        more(array, axis) for axis in axes if axis < array.ndim
    ]


WRONG_AT_RUN = {
    "positions": lambda right: [
        beyond(right),
        *(more(right, axis) for axis in range(right.ndim)),
    ],
    "lengths": lambda right: [
        beyond(right),
        right - 100,
        right * 0 + TOKENS + 1,
        *sizes(0)(right),
    ],
    "reference_length": lambda right: [
        *(np.full_like(right, number) for number in (0, -3, NAN, INF)),
        *sizes(0)(right),
    ],
    "mask": lambda right: [
        *sizes(0, 1)(right),
        *([right + 2] if right.dtype == "int32" else []),
    ],
    "segment_ids": sizes(0, 1),
    "attention_mask": lambda right: [
        more(right, axis)
        for axis in range(right.ndim)
        # One head stands for all.
        if right.shape[axis] > 1
    ],
    "token_ids": lambda right: [right * 0 - 1, right + 7, beyond(right)],
    "loops": lambda right: [
        *(right * 0, *sizes(0)(right)),
        *([beyond(right)] if right.dtype == "int64" else []),
    ],
    "index": lambda right: [],
}
"""Functions of a right array: what only a run knows is wrong, for all rows."""

FLAGS = ("use_causal_mask", "self_attention", "return_attention_scores")
FEATURES = ("query", "key", "value", "memory", "embeddings", "inputs", "cache")
KINDS = {
    **{kind: kind for kind in ("attention_mask", *WRONG)},
    **{"scored": "mask", "length": "reference_length", "ids": "token_ids"},
    **dict.fromkeys(FEATURES, "features"),
}


def kind_of(argument):
    """What an argument is, by the end of its name."""
    if argument in ("causal", *FLAGS):
        return "flag"
    found = (kind for end, kind in KINDS.items() if argument.endswith(end))
    return next(found, "other")


HOWS = {"tensorflow": ("eager", "graph", "XLA"), "jax": ("eager", "jit")}.get(
    keras.backend.backend(), ("eager",)
)
"""How functions are called on the backend of this process."""

SILENT = [how for how in HOWS if how in ("XLA", "jit")]
"""Programs without assertions."""


def compiled(function, right, how):
    """A function of arrays by name, as a program for arrays of any sizes."""
    if how == "eager":
        return function
    if how == "jit":
        import jax

        @jax.jit
        def traced(arrays):
            # Random states that change in a program must not leave it.
            with keras.StatelessScope():
                return function(**arrays)

        return lambda **arrays: traced(arrays)
    import tensorflow as tf

    def any_size(array):
        features = array.shape[2:] if array.dtype.kind == "f" else ()
        axes = [None] * (array.ndim - len(features))
        return tf.TensorSpec([*axes, *features], array.dtype)

    program = tf.function(
        lambda arrays: function(**arrays),
        input_signature=[keras.tree.map_structure(any_size, right)],
        jit_compile=how == "XLA",
        autograph=False,
    )
    return lambda **arrays: program(
        keras.tree.map_structure(tf.constant, arrays)
    )


def find_fault(call, named, how="eager"):
    """What is wrong with the answer to a wrong value, or `None`.

    `named` is a regular expression for a word of the message.
    """
    expected = ValueError
    if how in ("graph", "XLA"):
        from tensorflow.errors import InvalidArgumentError as expected
    try:
        result = call()
    except Exception as error:
        text = find_message(error)
        if isinstance(error, expected) and (
            how in SILENT or re.search(rf"\b({named})\b", text)
        ):
            return None
        return f"{type(error).__name__}: {text}"
    void = how in SILENT and is_void(result)
    return None if void else f"no error, in {how}"


def find_message(error):
    """What an error says, without what Keras adds."""
    # Below the message Keras lists all arguments, and around it writes bold.
    text, *_ = str(error).split("Arguments received by")
    *_, text = re.sub(r"\x1b\[\d*m", "", text).split(".call().\n\n")
    return text.strip()


def is_void(result):
    """Whether a result has no number that could be taken for a right one."""
    return all(
        np.isnan(array).all()
        if array.dtype.kind == "f"
        else (array == INVALID_POSITION).all()
        for array in map(np.asarray, keras.tree.flatten(result))
    )
