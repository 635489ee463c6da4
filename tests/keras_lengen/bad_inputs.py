"""Wrong values of inputs, by the reader of the input, and how they are refused.

Where a call knows that a value is wrong it raises `ValueError`. Where only a
run of a program knows, TensorFlow's ends with an assertion, and programs of XLA
and JAX, which have none, return nothing but NaN.
"""

import re

import keras
import numpy as np

from keras_lengen.checks.arguments import constructor_arguments
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


def make(cls, **arguments):
    """An object of a class, by the examples of the arguments it needs."""
    if "max_position" in cls.arguments():
        arguments = {"max_position": 64, **arguments}
    needed = {
        name: cls.arguments()[name].examples[0]
        for name, parameter in constructor_arguments(cls).items()
        if parameter.default is parameter.empty and name not in arguments
    }
    return cls(**needed, **arguments)


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


NO_TENSORS = ["x", b"x", object(), {}]
ROWS = {
    "text": np.full((BATCH, TOKENS), "x"),
    "objects": np.array([[object()] * TOKENS] * BATCH),
    "complex": np.ones((BATCH, TOKENS), "complex64"),
    "uneven": [[1, 0], [1], [1]],
}
IDS, MASK = integers(BATCH, TOKENS), truth(BATCH, TOKENS)
SIZES_OF_ROWS = {
    "got 3 for 2 examples": [more(MASK, 0)],
    "got 1 for 2 examples": [MASK[:1]],
    "got 7 for 6 tokens": [more(MASK, 1)],
    "got 1 for 6 tokens": [MASK[:, :1]],
}
"""Wrong sizes of what has an entry for each token, by the message."""

MESSAGES = {
    "positions": {
        r"must be numbers of shape \(T,\) or \(B, T\); got": [
            *NO_TENSORS,
            *ROWS.values(),
            *(None, True, [True] * TOKENS, ["x"] * TOKENS, [None] * TOKENS),
            integers(TOKENS) > 0,
        ],
        r"have shape .*; got \(\)\.": [3],
        r"have shape .*; got \(1, 2, 6\)\.": [IDS[None]],
        "each token: got 1 for 6": [[3]],
        "each token: got 5 for 6": [integers(TOKENS - 1)],
        "each token: got 7 for 6": [more(IDS, 1), [*range(7)], [[*range(7)]]],
        "got 3 rows for a batch of 2": [more(IDS, 0)],
        "finite .* got numbers from .*nan": [
            changed(integers(TOKENS), NAN, "float32"),
            changed(IDS, NAN, "float32"),
        ],
        "finite .* got .* to inf": [changed(integers(TOKENS), INF, "float32")],
        "merges neighbours; got .* from 1.* to 16777217": [
            changed(integers(TOKENS), 2**24 + 1)
        ],
        "merges neighbours; got .* from -16777217": [
            changed(integers(TOKENS), -(2**24) - 1)
        ],
        "got numbers from 1.* to 1e": [
            changed(integers(TOKENS), 1e30, "float32")
        ],
        "got int64 of shape": [changed(integers(TOKENS), 2**40, "int64")],
    },
    "lengths": {
        r"must be integers of shape \(\) or \(B,\); got": [
            *NO_TENSORS,
            *ROWS.values(),
            *(True, 2**40, [True, True], [2, None]),
        ],
        "must be integers, the true .* got float": [2.5, NAN, [], [2, 2.5]],
        "from 0 to the 6 tokens .* got 7": [7],
        "from 0 to the 6 tokens .* got -1": [-1],
        r"got \[2 7\]": [np.array([2, 7], "uint8")],
        r"got \[-1  2\]": [np.array([-1, 2])],
        "got 3 for a batch of 2": [[2, 2, 2]],
        "got 1 for a batch of 2": [[2]],
        r"must have shape \(\) or \(B,\); got \(1, 2\)": [[[2, 2]]],
        r"must have shape \(\) or \(B,\); got \(2, 1\)": [[[2], [2]]],
    },
    "reference_length": {
        r"must be numbers of shape \(\) or \(B,\); got": [
            *NO_TENSORS,
            *ROWS.values(),
            True,
        ],
        "must be above 0; got 0": [0],
        "must be above 0; got -1": [-1, np.array(-1.0)],
        "must be above 0; got nan": [NAN],
        "must be above 0; got inf": [INF],
        r"must be above 0; got \[2. 0.\]": [[2, 0]],
        "got 3 for a batch of 2": [[2, 2, 2]],
        "got 0 for a batch of 2": [[]],
        r"must have shape \(\) or \(B,\); got \(1, 2\)": [[[2, 2]]],
    },
    "mask": {
        r"must be truth values of shape \(B, T\); got": [
            *NO_TENSORS,
            *ROWS.values(),
        ],
        r"must have shape \(B, T\); got \(\)": [True, 1],
        r"must have shape \(B, T\); got \(\d,\)": [[], truth(TOKENS)],
        r"must have shape \(B, T\); got \(2, 6, 1\)": [MASK[..., None]],
        **SIZES_OF_ROWS,
        "got 0 for 2 examples": [MASK[:0]],
        # What other libraries add to scores.
        "got float32: pass a comparison, mask == 0 for .* mask > 0 for": [
            np.zeros(MASK.shape, "float32"),
            np.full(MASK.shape, -1e9, "float32"),
            np.full(MASK.shape, NAN, "float32"),
        ],
        "got integers from -10000 to": [np.full(MASK.shape, -10000)],
        "got integers from 2 to": [np.full(MASK.shape, 2, "uint8")],
    },
    "segment_ids": {
        r"must be integers of shape \(B, T\), the document .*; got": [
            *NO_TENSORS,
            *ROWS.values(),
            MASK,
            floats(BATCH, TOKENS),
        ],
        r"must have shape \(B, T\); got \(\)": [3],
        r"must have shape \(B, T\); got \(6,\)": [integers(TOKENS)],
        **{
            message: [np.array(rows, "int32") for rows in values]
            for message, values in SIZES_OF_ROWS.items()
        },
    },
    "token_ids": {
        r"must be integers of shape \(B, T\); got": [
            *NO_TENSORS,
            *ROWS.values(),
            *(None, [["x"]], [[None]], np.full(IDS.shape, 2**63, "uint64")),
            changed(IDS, 2**40, "int64"),
        ],
        r"must have shape \(B, T\); got \(\)": [3],
        r"must have shape \(B, T\); got \(\d,\)": [[], integers(TOKENS)],
        r"must have shape \(B, T\); got \(2, 6, 1\)": [IDS[..., None]],
        "must be integers; got bool: cast": [MASK, [[True, False]]],
        "must be integers; got float32: cast": [
            floats(BATCH, TOKENS),
            [[1.0, 2.0]],
        ],
        "from 0 to 6, below vocabulary_size; got ids from 2 to 7": [IDS + 2],
        "from 0 to 6, below vocabulary_size; got ids from -1 to 4": [IDS - 1],
    },
    "index": {
        "must be an integer from 0 to 16777216, or a scalar .* one; got": [
            *NO_TENSORS,
            *(-1, 2.5, NAN, True, None, 2**24 + 1, [1]),
            integers(BATCH),
            np.array(1.0),
            np.array(True),
        ]
    },
    "loops": {
        r"must be integers of shape \(\) or \(B,\)": [
            *NO_TENSORS,
            *ROWS.values(),
            *(True, 2.5, NAN, [], [1, 2.5], [[2], [2]]),
        ],
        "must be at least 1 and below": [0, -1, [2, 0]],
        "must have equally many examples; got 3 and 2": [[2, 2, 2]],
    },
    "attention_mask": {
        r"must be truth values of shape \(T, S\), \(B, T, S\) or": [
            *NO_TENSORS,
            *ROWS.values(),
            np.zeros((TOKENS, TOKENS), "float32"),
            np.full((BATCH, TOKENS, TOKENS), -1e9, "float32"),
            np.full((TOKENS, TOKENS), -10000),
            np.full((BATCH, 1, TOKENS, TOKENS), 2, "uint8"),
        ],
        "must have shape": [
            *(True, [], truth(TOKENS), truth(BATCH, 1, 1, TOKENS, TOKENS)),
            truth(TOKENS, TOKENS + 7),
            truth(TOKENS + 1, TOKENS),
            truth(BATCH + 1, TOKENS, TOKENS),
            truth(BATCH, HEADS + 1, TOKENS, TOKENS),
        ],
    },
    "features": {
        "must be a tensor": [
            *NO_TENSORS,
            *(3.5, [[1.0], [2.0, 3.0]], *ROWS.values()),
            np.full((BATCH, TOKENS, MODEL_DIM), "x"),
            np.ones((BATCH, TOKENS, MODEL_DIM), "complex64"),
            np.array([[object()]]),
        ],
        "must have shape|must have at least": [
            *(floats(MODEL_DIM), floats(TOKENS, MODEL_DIM)),
            floats(BATCH, TOKENS, HEADS, 1, WIDTH),
        ],
    },
    "flag": {
        "must be True or False; got": [
            *("x", None, 1, NAN, [], "False", truth(2)),
        ]
    },
}
"""Wrong values by what they are and by what the message says."""


def by_turns(groups):
    """The first values of all groups, then the second ones, ..."""
    longest = max(map(len, groups))
    return [
        group[i] for i in range(longest) for group in groups if i < len(group)
    ]


WRONG = {kind: by_turns([*each.values()]) for kind, each in MESSAGES.items()}
"""Wrong values by what they are, the most different ones first."""


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
    "features": lambda right: [],
}
"""Functions of a right array: of its type, what only a run knows is wrong.

Numbers are wrong in all examples, so that all results must be NaN.
"""

FLAGS = {
    *("causal", "use_causal_mask", "self_attention"),
    "return_attention_scores",
}
FEATURES = ("query", "key", "value", "memory", "embeddings", "inputs", "cache")
KINDS = {
    "positions": "positions",
    "attention_mask": "attention_mask",
    "mask": "mask",
    "scored": "mask",
    "lengths": "lengths",
    "length": "reference_length",
    "segment_ids": "segment_ids",
    "ids": "token_ids",
    "index": "index",
    "loops": "loops",
    **dict.fromkeys(FEATURES, "features"),
}


def kind_of(argument):
    """What an argument is, by the end of its name."""
    if argument in FLAGS:
        return "flag"
    found = (kind for end, kind in KINDS.items() if argument.endswith(end))
    return next(found, "other")


HOWS = {
    "tensorflow": ("eager", "graph", "XLA"),
    "jax": ("eager", "jit"),
}.get(keras.backend.backend(), ("eager",))
"""How functions are called on the backend of this process."""


def compiled(function, right, how):
    """A function of arrays by name, as a program for arrays of any sizes.

    Args:
        function: Takes arrays, or pairs of them, by name.
        right: Right arrays.
        how: One of `HOWS`.
    """
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
    )
    return lambda **arrays: program(
        keras.tree.map_structure(tf.constant, arrays)
    )


def find_fault(call, named, how="eager"):
    """What is wrong with the answer to a wrong value, or `None`.

    Args:
        call: Function without arguments.
        named: Regular expression for a word of the message.
        how: One of `HOWS`.
    """
    expected = ValueError
    if how in ("graph", "XLA"):
        from tensorflow.errors import InvalidArgumentError as expected
    try:
        result = call()
    except Exception as error:
        text = find_message(error)
        silent = how in ("XLA", "jit")
        if isinstance(error, expected) and (
            silent or re.search(rf"\b({named})\b", text)
        ):
            return None
        return f"{type(error).__name__}: {text}"
    void = how in ("XLA", "jit") and is_void(result)
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


def describe(value):
    if isinstance(value, np.ndarray):
        numbers = ", ".join(map(str, np.ravel(value)[:3]))
        return f"{value.dtype} {value.shape}: {numbers}"
    if isinstance(value, tuple):
        return f"({', '.join(map(describe, value))})"
    return repr(value)
