"""All encodings as the tests know them: a new one needs a row here.

Imports no backend, so that every backend can compute what the rows describe.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from keras import ops

from keras_lengen.layers import ENCODINGS, ALiBi, RandomizedPositions
from keras_lengen.layers.encodings.randomized import FixedSampler

BATCH, TOKENS, HEADS, WIDTH = 2, 6, 2, 8
MODEL_DIM = HEADS * WIDTH
LONGEST = 1100
"""Rows of a table of positions, where an encoding has one."""

ALL = slice(None)


@dataclasses.dataclass(frozen=True)
class Row:
    """An encoding and what is promised of it.

    Attributes:
        arguments: Arguments to construct it with.
        alternatives: Another value of every argument but `seed` and those
            that are refused.
        refused: Arguments that raise.
        idle: Arguments that change nothing.
        idle_weights: Names of weights that softmax does not see, so that
            training leaves them alone.
        variants: Arguments whose alternative is put through all tests too.
        uses_positions: Whether positions change the result.
        shifts: Whether only differences of positions matter.
        ranks: Maps arguments to whether positions are read by their rank, so
            that pairs equally many tokens apart are equally far apart.
        counts_tokens: Whether other keys of a query change the result.
        bottom: Smallest position for which it is defined.
        top: Largest position for which it is defined.
        longest: Tokens of the longest sequence, `None` for any.
        position_dtypes: Kinds of numbers that positions may be.
    """

    arguments: dict = dataclasses.field(default_factory=dict)
    alternatives: dict = dataclasses.field(default_factory=dict)
    refused: tuple = ()
    idle: tuple = ()
    idle_weights: tuple = ()
    variants: tuple = ()
    uses_positions: bool = True
    shifts: bool = False
    ranks: Callable = lambda arguments: False
    counts_tokens: bool = False
    bottom: float = float("-inf")
    top: int = 100_000
    longest: int | None = None
    position_dtypes: tuple = ("int32", "float32")


PLAIN = {"sampler": RandomizedPositions(max_position=64, seed=1)}
RANDOMIZED_ARGUMENTS = {
    "max_position": 2 * LONGEST,
    "resample": "example",
    "evaluation": "even",
    "ordered": False,
    "include_zero": True,
}


def fixed_form(row, sampler=RANDOMIZED_ARGUMENTS, **changes):
    """Makes the row of an encoding with a fixed sampler from its own row."""
    alternatives = {**row.alternatives, **sampler}
    del alternatives["sampler"]
    return dataclasses.replace(
        row,
        **{
            "arguments": {"max_position": LONGEST, "seed": 1},
            "alternatives": alternatives,
            "refused": ("sampler",),
            "variants": (),
            "longest": LONGEST,
            **changes,
        },
    )


def sampled_form(row):
    """Makes the row of a randomized form that samples distances by default."""
    return fixed_form(
        dataclasses.replace(
            row, alternatives={**row.alternatives, "distances": "positions"}
        ),
        # By default as in the published draws of distances.
        {**RANDOMIZED_ARGUMENTS, "include_zero": False},
        variants=("distances",),
        ranks=lambda arguments: arguments.get("distances") != "positions",
    )


SINUSOIDAL = Row(
    alternatives={**PLAIN, "max_wavelength": 100, "layout": "interleaved"},
    variants=("layout",),
)
LEARNED = Row(
    arguments={"max_position": LONGEST},
    alternatives={
        **PLAIN,
        "max_position": 2 * LONGEST,
        "initializer": "random_uniform",
    },
    top=LONGEST - 1,
    longest=LONGEST,
    position_dtypes=("int32",),
)
ROPE = Row(
    alternatives={
        **PLAIN,
        "max_wavelength": 100,
        "rotary_fraction": 0.5,
        "layout": "halves",
    },
    variants=("rotary_fraction", "layout"),
    shifts=True,
)
NTK_ROPE = dataclasses.replace(
    ROPE,
    arguments={"scaling_factor": 4.0},
    alternatives={
        **ROPE.alternatives,
        "scaling_factor": 2.0,
        "original_length": 4,
    },
    variants=(),
)
YARN = dataclasses.replace(
    ROPE,
    arguments={"original_length": 2048, "scaling_factor": 4.0},
    alternatives={
        **ROPE.alternatives,
        "original_length": 128,
        "scaling_factor": None,
        "beta_fast": 2,
        "beta_slow": 5,
    },
    variants=(),
)
XPOS = dataclasses.replace(
    ROPE,
    # So slow a fading that features keep their size at far positions.
    arguments={"scale_base": 100_000},
    alternatives={**ROPE.alternatives, "scale_base": 64},
)
RELATIVE = Row(
    alternatives={**PLAIN, "max_wavelength": 100, "distances": "sampled"},
    variants=("distances",),
    shifts=True,
    ranks=lambda arguments: arguments.get("distances") == "sampled",
)
ALIBI = Row(
    alternatives={**PLAIN, "asymmetry": 0.0, "distances": "sampled"},
    variants=("asymmetry", "distances"),
    shifts=True,
    ranks=lambda arguments: arguments.get("distances") == "sampled",
)
SHAW = Row(
    alternatives={**PLAIN, "max_distance": 4, "share_layers": True},
    idle=("share_layers",),
    shifts=True,
)
HARD_ALIBI = Row(
    arguments={"windowed_heads": 2},
    alternatives={**PLAIN, "windowed_heads": 1},
    shifts=True,
)
CLIPPED_BIAS = Row(
    alternatives={
        **PLAIN,
        "max_distance": 2,
        "slope": 0.5,
        "table_scale": 1.0,
        "share_layers": True,
    },
    idle=("share_layers",),
    shifts=True,
)
COPE = Row(
    alternatives={"num_positions": 3, "share_layers": True},
    refused=("sampler",),
    idle=("share_layers",),
    uses_positions=False,
    shifts=True,
    counts_tokens=True,
)
DAPE = Row(
    alternatives={
        **PLAIN,
        "encoding": ALiBi(),
        "hidden_dim": 16,
        "share_layers": True,
    },
    idle=("share_layers",),
    idle_weights=("output_bias",),
    shifts=True,
)
KERPLE = Row(
    alternatives={**PLAIN, "asymmetry": 0.5, "share_layers": False},
    idle=("share_layers",),
    variants=("asymmetry",),
    shifts=True,
)
SANDWICH = Row(alternatives={**PLAIN, "dimension": 32}, shifts=True)
T5_BIAS = Row(
    alternatives={
        **PLAIN,
        "num_buckets": 16,
        "max_distance": 64,
        "share_layers": False,
    },
    idle=("share_layers",),
    shifts=True,
)
FIRE = Row(
    alternatives={
        **PLAIN,
        "hidden_dim": 16,
        "threshold": 32,
        "share_layers": True,
    },
    bottom=0,
    idle=("share_layers",),
    idle_weights=("output_bias",),
)

ROWS = {
    "NoPE": Row(
        alternatives=PLAIN,
        idle=("sampler",),
        uses_positions=False,
        shifts=True,
    ),
    "SinusoidalEncoding": SINUSOIDAL,
    "LearnedEncoding": LEARNED,
    "RoPE": ROPE,
    "NTKRoPE": NTK_ROPE,
    "YaRN": YARN,
    "XPos": XPOS,
    "RelativeEncoding": RELATIVE,
    "ShawEncoding": SHAW,
    "ALiBi": ALIBI,
    "CoPE": COPE,
    "DAPE": DAPE,
    "HardALiBi": HARD_ALIBI,
    "ClippedBias": CLIPPED_BIAS,
    "PowerKERPLE": KERPLE,
    "LogKERPLE": KERPLE,
    "Sandwich": SANDWICH,
    "T5Bias": T5_BIAS,
    "FIRE": FIRE,
    "SHAPE": fixed_form(
        SINUSOIDAL,
        {"max_shift": 20, "evaluation": "max"},
        arguments={"max_shift": 50, "evaluation": "random", "seed": 1},
        longest=None,
    ),
    "CAPE": fixed_form(
        SINUSOIDAL,
        {
            "max_global_shift": 9,
            "max_local_shift": 0.25,
            "max_global_scale": 1.2,
            "normalize": True,
        },
        arguments={"seed": 1},
        longest=None,
    ),
    "WarpedRoPE": fixed_form(
        ROPE,
        {
            "train_length": 3,
            "head_fraction": 0.1,
            "tail_fraction": 0.0,
            "head_scales": (0.3, 0.9),
            "skew": "beta",
        },
        # Large fractions and a seed, so that two examples meet both warpings.
        arguments={
            "train_length": 4,
            "head_fraction": 0.5,
            "tail_fraction": 0.5,
            "seed": 1,
        },
        longest=None,
    ),
    "RandomizedSinusoidalEncoding": fixed_form(SINUSOIDAL),
    "RandomizedLearnedEncoding": fixed_form(LEARNED),
    "RandomizedRoPE": fixed_form(ROPE),
    "RandomizedRelativeEncoding": sampled_form(RELATIVE),
    "RandomizedALiBi": sampled_form(ALIBI),
    "RandomizedPowerKERPLE": fixed_form(KERPLE),
    "RandomizedLogKERPLE": fixed_form(KERPLE),
    "RandomizedSandwich": fixed_form(SANDWICH),
    "RandomizedFIRE": fixed_form(FIRE),
}

VARIANTS = {
    **{name: (name, row.arguments) for name, row in ROWS.items()},
    **{
        f"{name}-{row.alternatives[changed]}": (
            name,
            {**row.arguments, changed: row.alternatives[changed]},
        )
        for name, row in ROWS.items()
        for changed in row.variants
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
    return row_of(variant).ranks(VARIANTS[variant][1])


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
    query, key = encoding.rotate(query, key, query_positions, key_positions)
    scores = ops.einsum(
        "bthd,bshd->bhts",
        ops.cast(query, "float32"),
        ops.cast(key, "float32"),
    )
    scores = scores * WIDTH**-0.5
    return scores if bias is None else scores + bias


def pick(encoding, result, tokens):
    """The part of what `encode` returns that concerns some tokens only."""
    result = np.asarray(result)
    if encoding.stage == "embeddings":
        return result[:, tokens]
    return result[:, :, tokens][..., tokens]
