"""How bad inputs are told apart from good ones, and which there are.

Imports no backend, so that every backend can be tested with them.
"""

import dataclasses
import functools
import re
from collections.abc import Callable

import keras
import numpy as np

from keras_lengen.checks.guards import INVALID_POSITION
from tests.keras_lengen.layers.encodings.table import (
    BATCH,
    HEADS,
    MODEL_DIM,
    TOKENS,
    WIDTH,
)

SIZES = {
    "vocabulary_size": 7,
    "output_size": 3,
    "num_layers": 1,
    "num_heads": HEADS,
    "model_dim": MODEL_DIM,
    "feedforward_dim": 8,
}
HEAD_SIZES = {"num_heads": HEADS, "key_dim": WIDTH}


@dataclasses.dataclass(frozen=True)
class Case:
    """A call with one bad argument.

    Attributes:
        subject: What is called.
        argument: The argument that the message must name, or several of them,
            with "|" between.
        value: The bad value, in words.
        call: The call.
    """

    subject: str
    argument: str
    value: str
    call: Callable


@dataclasses.dataclass(frozen=True)
class Call:
    """A right call, and wrong values of its arguments.

    Attributes:
        subject: What is called.
        function: Takes the arguments by name.
        right: Right arguments.
        wrong: Wrong values by argument, or by a pair of the argument that is
            changed and the one that the message must name.
        idle: Arguments that change nothing, of which a program that cannot
            raise may make what it likes.
    """

    subject: str
    function: Callable
    right: dict
    wrong: dict
    idle: tuple = ()

    @property
    def arrays(self):
        """The right arguments that are arrays, or pairs of them."""
        return {
            name: value
            for name, value in self.right.items()
            if all(
                isinstance(leaf, np.ndarray)
                for leaf in keras.tree.flatten(value)
            )
        }

    def changes(self):
        """The argument to change, the one to be named, and a wrong value."""
        for names, values in self.wrong.items():
            changed, named = names if isinstance(names, tuple) else [names] * 2
            for value in values:
                yield changed, named, value

    def cases(self, function=None):
        for changed, named, value in self.changes():
            yield Case(
                self.subject,
                named,
                described(value),
                functools.partial(
                    function or self.function, **{**self.right, changed: value}
                ),
            )


def fault(case, errors=ValueError):
    """What is wrong with the answer to a bad input; `None` if nothing is."""
    try:
        case.call()
    except Exception as error:
        text = message(error)
        if isinstance(error, errors) and names(text, case.argument):
            return None
        return f"{type(error).__name__}: {text}"
    return "no error"


def faults(cases, errors=ValueError):
    """A line for every case that is not answered as it should be."""
    return [
        f"{case.subject}({case.argument}={case.value}): {found}"
        for case in cases
        if (found := fault(case, errors)) is not None
    ]


def message(error):
    """What an error says, without what Keras adds."""
    # Below the message Keras lists all arguments, and around it writes bold.
    text, *_ = str(error).split("Arguments received by")
    *_, text = re.sub(r"\x1b\[\d*m", "", text).split(".call().\n\n")
    return text.strip()


def names(text, argument):
    return re.search(rf"\b({argument})\b", text) is not None


def is_void(result):
    """Whether a result has no number that could be taken for a right one."""
    return all(
        np.isnan(array).all()
        if array.dtype.kind == "f"
        else (array == INVALID_POSITION).all()
        for array in map(np.asarray, keras.tree.flatten(result))
    )


def described(value):
    if isinstance(value, np.ndarray):
        numbers = ", ".join(map(str, np.ravel(value)[:3]))
        return f"{value.dtype} {value.shape}: {numbers}"
    if isinstance(value, tuple):
        return f"({', '.join(map(described, value))})"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__} {value.dtype} {value.shape}"
    return repr(value)


def floats(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def integers(*shape):
    """0, 1, 2, ... along the last axis."""
    return np.broadcast_to(np.arange(shape[-1], dtype="int32"), shape)


def changed(array, value, dtype=None):
    """A copy of an array whose first entry is something else."""
    array = np.array(array, dtype)
    array.flat[0] = value
    return array


NAN, INF = float("nan"), float("inf")
NO_TENSORS = ["x", b"x", object(), {}]
MORE, BATCH_OF_MORE = TOKENS + 1, BATCH + 1
OTHERS = TOKENS + 3
"""Tokens of another sequence."""

POSITIONS = [
    *NO_TENSORS,
    3,
    [3],
    True,
    integers(MORE),
    integers(TOKENS - 1),
    list(range(MORE)),
    integers(BATCH_OF_MORE, TOKENS),
    integers(BATCH, MORE),
    integers(1, MORE),
    integers(1, BATCH, TOKENS),
    integers(TOKENS) > 0,
    [True] * TOKENS,
    ["x"] * TOKENS,
    [None] * TOKENS,
    [[0, 1], [0]],
    np.array([object()] * TOKENS),
    integers(TOKENS).astype("complex64"),
    changed(integers(TOKENS), NAN, "float32"),
    changed(integers(BATCH, TOKENS), NAN, "float32"),
    changed(integers(TOKENS), INF, "float32"),
    changed(integers(TOKENS), 2**30),
    changed(integers(TOKENS), 2**40, "int64"),
    changed(integers(TOKENS), 1e30, "float32"),
]
INDICES = [*NO_TENSORS, -1, 2.5, NAN, True, None, 2**40, [1], integers(BATCH)]
LENGTHS = [
    *NO_TENSORS,
    -1,
    MORE,
    2**40,
    2.5,
    NAN,
    True,
    [],
    [2, 2.5],
    [2, None],
    ["x", "x"],
    [True, True],
    [[2], [2, 3]],
    np.array([2, MORE], "int32"),
    np.array([-1, 2], "int32"),
    np.array([2**32 + 2, 2], "int64"),
    np.array([2, NAN], "float32"),
    np.array([2] * BATCH_OF_MORE, "int32"),
    np.array([2], "int32"),
    np.array([[2] * BATCH], "int32"),
    np.array([[2]] * BATCH, "int32"),
    np.array(["x"] * BATCH),
    np.full(BATCH, 2, "complex64"),
]
REFERENCE_LENGTHS = [
    *NO_TENSORS,
    0,
    -1,
    NAN,
    INF,
    True,
    [],
    np.array([2, 0], "float32"),
    np.array([2, NAN], "float32"),
    np.array([-3, 2], "int32"),
    np.array([2] * BATCH_OF_MORE, "float32"),
    np.array([[2] * BATCH], "float32"),
    np.array(["x"] * BATCH),
    np.full(BATCH, 2, "complex64"),
]
MASKS = [
    *NO_TENSORS,
    True,
    1,
    [],
    [[True] * TOKENS, [True]],
    ["x"] * TOKENS,
    np.ones(TOKENS, bool),
    np.ones((BATCH_OF_MORE, TOKENS), bool),
    np.ones((1, TOKENS), bool),
    np.ones((BATCH, MORE), bool),
    np.ones((BATCH, 1), bool),
    np.ones((BATCH, TOKENS, 1), bool),
    np.array([[object()] * TOKENS] * BATCH),
    # What other libraries add to scores.
    np.zeros((BATCH, TOKENS), "float32"),
    np.full((BATCH, TOKENS), -1e9, "float32"),
    np.full((BATCH, TOKENS), NAN, "float32"),
    np.full((BATCH, TOKENS), -10000, "int32"),
    np.full((BATCH, TOKENS), 2, "uint8"),
    np.ones((BATCH, TOKENS), "complex64"),
    np.ones((0, TOKENS), bool),
]
ATTENTION_MASKS = [
    *NO_TENSORS,
    True,
    [],
    np.ones(TOKENS, bool),
    np.ones((TOKENS, MORE), bool),
    np.ones((MORE, TOKENS), bool),
    np.ones((BATCH_OF_MORE, TOKENS, TOKENS), bool),
    np.ones((BATCH, HEADS + 1, TOKENS, TOKENS), bool),
    np.ones((BATCH, 1, 1, TOKENS, TOKENS), bool),
    np.zeros((TOKENS, TOKENS), "float32"),
    np.full((BATCH, TOKENS, TOKENS), -1e9, "float32"),
    np.full((TOKENS, TOKENS), -10000, "int32"),
    np.full((BATCH, 1, TOKENS, TOKENS), 2, "uint8"),
    np.ones((TOKENS, TOKENS), "complex64"),
    np.full((TOKENS, TOKENS), "x"),
    [[True] * TOKENS, [True]],
]
FLAGS = ["x", None, 1, NAN, [], "False", np.ones(2, bool)]
FEATURES = [
    *NO_TENSORS,
    3.5,
    [[1.0], [2.0, 3.0]],
    np.array([["x"]]),
    np.array([[object()]]),
    floats(MODEL_DIM),
    floats(TOKENS, MODEL_DIM),
    floats(BATCH, TOKENS, HEADS, 1, WIDTH),
    floats(BATCH, TOKENS, 0),
    floats(BATCH, TOKENS, MODEL_DIM).astype("complex64"),
    np.full((BATCH, TOKENS, MODEL_DIM), "x"),
]

TOKEN_IDS = [
    *NO_TENSORS,
    None,
    3,
    [],
    [1, 2],
    [[1, 2], [3]],
    [["x"]],
    [[None]],
    [[True, False]],
    [[1.0, 2.0]],
    floats(BATCH, TOKENS),
    integers(TOKENS),
    integers(BATCH, TOKENS, 1),
    changed(integers(BATCH, TOKENS), SIZES["vocabulary_size"]),
    changed(integers(BATCH, TOKENS), -1),
    changed(integers(BATCH, TOKENS), 2**40, "int64"),
    changed(integers(BATCH, TOKENS), 2**32, "int64"),
    np.full((BATCH, TOKENS), 10**9, "int32"),
    np.full((BATCH, TOKENS), 2**63, "uint64"),
    np.full((BATCH, TOKENS), NAN, "float32"),
    np.full((BATCH, TOKENS), "x"),
    np.ones((BATCH, TOKENS), "complex64"),
    np.array([[object()] * TOKENS] * BATCH),
]
