"""All encodings as the tests know them, from what their classes declare.

Imports no backend, so that every backend can compute what the rows describe.
"""

import dataclasses

import numpy as np
from keras import ops

from keras_lengen.checks.arguments import Choice, constructor_arguments
from keras_lengen.layers import ENCODINGS
from keras_lengen.layers.encodings.randomized import FixedSampler
from tests.keras_lengen.layers.positions.table import halve

BATCH, TOKENS, HEADS, WIDTH = 2, 6, 2, 8
MODEL_DIM = HEADS * WIDTH
LONGEST = 1100
"""Rows of a table of positions, where an encoding has one."""

ALL = slice(None)

CONDITIONS = {
    # Unlike RoPE even if the length is unknown.
    "NTKRoPE": {"scaling_factor": 4.0},
    "YaRN": {"original_length": 2048, "scaling_factor": 4.0},
    # Groups that do not divide the tests' shifts of positions.
    "SelfExtend": {"group_size": 6, "window": 4},
    "ReRoPE": {"window": 4},
    # So slow a decay that features keep their size at far positions.
    "XPos": {"scale_base": 2**20},
    # By default, one of two heads has a window, which holds one token only.
    "HardALiBi": {"windowed_heads": 2},
    # Draws in evaluation too.
    "SHAPE": {"evaluation": "random"},
    # Large fractions, so that two examples meet both warpings, and sequences
    # longer than the trained ones.
    "WarpedRoPE": {
        "train_length": 4,
        "head_fraction": 0.5,
        "tail_fraction": 0.5,
    },
}
"""Arguments to construct an encoding with, where its defaults show less."""

IDLE_WEIGHTS = ("output_bias",)
"""Names of weights that add the same to all scores of a query, which softmax
does not see."""


@dataclasses.dataclass(frozen=True)
class Row:
    """An encoding and what is promised of it.

    Attributes:
        arguments: Arguments to construct it with: the examples of those that
            it needs, a seed, and its `CONDITIONS`. A table has `LONGEST` rows.
        alternatives: Other values of every argument but `seed` and those that
            are refused.
        refused: Arguments that raise.
        idle: Arguments that change nothing.
        variants: Pairs of an argument and another value of it, with which the
            encoding is put through all tests too.
        uses_positions: Whether positions change the result.
        shifts: Whether only differences of positions matter.
        counts_tokens: Whether other keys of a query change the result.
        bottom: Smallest position for which it is defined.
        top: Largest position for which it is defined.
        longest: Tokens of the longest sequence, `None` for any.
        position_dtypes: Kinds of numbers that positions may be.
    """

    arguments: dict
    alternatives: dict
    refused: tuple
    idle: tuple
    variants: tuple
    uses_positions: bool
    shifts: bool
    counts_tokens: bool
    bottom: float
    top: int
    longest: int | None
    position_dtypes: tuple


def make_row(name, cls):
    """Makes the row of an encoding from its class."""
    declared = cls.arguments()
    needed = {
        argument: declared[argument].examples[0]
        for argument, parameter in constructor_arguments(cls).items()
        if parameter.default is parameter.empty
    }
    has_table = "max_position" in declared
    arguments = {
        **needed,
        **({"max_position": LONGEST} if has_table else {}),
        **({"seed": 1} if "seed" in declared else {}),
        **CONDITIONS.get(name, {}),
    }
    encoding = cls(**arguments)
    refused = ()
    if issubclass(cls, FixedSampler) or encoding.counts_tokens:
        refused = ("sampler",)
    alternatives = {
        argument: find_others(declaration, getattr(encoding, argument))
        for argument, declaration in declared.items()
        if argument not in ("seed", *refused)
    }
    return Row(
        arguments=arguments,
        alternatives=alternatives,
        refused=refused,
        idle=("share_layers", *(["sampler"] if encoding.stage is None else [])),
        variants=tuple(
            (argument, value)
            for argument in list_variants(cls)
            for value in alternatives[argument]
        ),
        uses_positions=encoding.stage is not None
        and not encoding.counts_tokens,
        shifts=encoding.shift_invariant,
        counts_tokens=encoding.counts_tokens,
        bottom=float("-inf") if encoding.takes_negative else 0,
        top=100_000 if encoding.defined_past_training else LONGEST - 1,
        longest=LONGEST if has_table else None,
        position_dtypes=("int32", "float32")
        if encoding.takes_fractions
        else ("int32",),
    )


def find_others(declaration, value):
    """Lists the examples other than the value in use; at least one."""
    others = [other for other in declaration.examples if other != value]
    return others or [halve(value)]


def list_variants(cls):
    """Lists the arguments that choose between formulas.

    A class with a fixed sampler counts only arguments that it declares itself:
    its encoding and its sampler are tested with the others.
    """
    own = {
        argument
        for base in cls.__mro__
        if issubclass(base, FixedSampler) or not issubclass(cls, FixedSampler)
        for argument in vars(base)
    }
    return [
        argument
        for argument, declaration in cls.arguments().items()
        if argument in own
        and (isinstance(declaration, Choice) or declaration.variant)
    ]


ROWS = {name: make_row(name, cls) for name, cls in ENCODINGS.items()}

VARIANTS = {
    **{name: (name, row.arguments) for name, row in ROWS.items()},
    **{
        f"{name}-{value}": (name, {**row.arguments, argument: value})
        for name, row in ROWS.items()
        for argument, value in row.variants
    },
}
"""Name and arguments of every case: the rows, and their variants."""

BIDIRECTIONAL = [
    variant
    for variant, (name, _) in VARIANTS.items()
    if not ENCODINGS[name].causal_only
]
"""The variants that an encoder may have."""


FAMILIES = (
    "NoPE",
    "SinusoidalEncoding",
    "RandomizedRoPE",
    "XPos",
    "RelativeEncoding",
    "FIRE",
)
"""One encoding of each kind, for what is the same for all of a kind."""


ALIKE = (
    "NTKRoPE",
    "Llama3RoPE",
    "NAPE",
    "LogKERPLE",
    "BAM",
    "RandomizedYaRN",
    "RandomizedPowerKERPLE",
    "RandomizedLogKERPLE",
)
"""Encodings that differ from `YaRN`, `ALiBi`, `PowerKERPLE`, `RandomizedRoPE`
and `RandomizedALiBi` in their formula only, so that most of their tests in
models are slow tests."""


def in_families(variant, *others):
    """Whether the default run tests it, where a test takes long."""
    return variant in FAMILIES


def has_free_sampler(variant):
    """Whether the default run tests it, where a fixed sampler adds nothing."""
    name, _ = VARIANTS[variant]
    return name in FAMILIES or not issubclass(ENCODINGS[name], FixedSampler)


def row_of(variant):
    return ROWS[VARIANTS[variant][0]]


def ranks(variant):
    """Whether positions are read by their rank.

    Pairs equally many tokens apart are then equally far apart.
    """
    return make(variant).reads_ranks


def select(**features):
    """The variants whose rows have these attributes."""
    return [
        variant
        for variant in VARIANTS
        if all(
            getattr(row_of(variant), name) == value
            for name, value in features.items()
        )
    ]


def at_stage(*stages):
    """The variants that act at one of the stages."""
    return [
        variant
        for variant, (name, _) in VARIANTS.items()
        if ENCODINGS[name].stage in stages
    ]


def make(variant, **changes):
    """A new encoding, for a key of `VARIANTS`."""
    name, arguments = VARIANTS[variant]
    return ENCODINGS[name](**{**arguments, **changes})


def make_built(variant, **changes):
    """A new encoding with its weights."""
    encoding = make(variant, **changes)
    shape = (BATCH, TOKENS)
    if encoding.stage == "embeddings":
        encoding.build((*shape, MODEL_DIM))
    else:
        encoding.build((*shape, HEADS, WIDTH), (*shape, HEADS, WIDTH))
    return encoding


def random_inputs(stage, tokens=TOKENS, batch_size=BATCH):
    """Embeddings, or queries and keys, as an encoding of the stage takes."""
    generator = np.random.default_rng(0)
    if stage == "embeddings":
        shapes = [(batch_size, tokens, MODEL_DIM)]
    else:
        shapes = [(batch_size, tokens, HEADS, WIDTH)] * 2
    return [generator.normal(size=shape).astype("float32") for shape in shapes]


def encode(encoding, inputs, positions, *, queries=ALL, keys=ALL, causal=False):
    """Embeddings with their encoding, or the scores of an attention.

    Calls the stages as models do.

    Args:
        encoding: A built encoding.
        inputs: What `random_inputs` returns.
        positions: `(T,)` or `(B, T)`.
        queries: The tokens to encode, or that attend.
        keys: The tokens that are attended to.
        causal: Whether later keys are going to be masked.

    Returns:
        `(B, T, M)`, or float32 `(B, H, T, S)`.
    """
    query = ops.convert_to_tensor(inputs[0])[:, queries]
    positions = ops.convert_to_tensor(positions)
    query_positions = key_positions = positions[..., queries]
    if encoding.stage == "embeddings":
        return encoding.add_to_embeddings(query, query_positions)
    key = ops.convert_to_tensor(inputs[1])[:, keys]
    if keys != queries:
        key_positions = positions[..., keys]
    bias = encoding.attention_bias(
        query, key, query_positions, key_positions, causal=causal
    )
    if encoding.reads_inputs:
        # The features of the tokens are the queries of all heads.
        features = ops.reshape(inputs[0], (*inputs[0].shape[:2], -1))
        steps = encoding.find_steps(features)[:, keys]
        indices = np.arange(inputs[0].shape[1], dtype="int32")[queries]
        query, key = encoding.turn(query, key, steps, indices)
    else:
        query, key = encoding.rotate(query, key, query_positions, key_positions)
    scores = encoding.multiply(
        ops.cast(query, "float32"),
        ops.cast(key, "float32"),
        query_positions,
        key_positions,
    )
    scores = scores * WIDTH**-0.5
    return scores if bias is None else scores + bias


def pick(encoding, result, tokens):
    """The part of what `encode` returns that concerns some tokens only."""
    result = np.asarray(result)
    if encoding.stage == "embeddings":
        return result[:, tokens]
    return result[:, :, tokens][..., tokens]
