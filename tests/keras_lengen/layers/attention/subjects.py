"""Attentions to compare: each class with encodings and options.

Imports no backend, so that every backend can compute them.
"""

import numpy as np

from keras_lengen.layers import (
    ForgettingAttention,
    GeometricAttention,
    LengthFactor,
    MultiHeadAttention,
    PaTHAttention,
    StickBreakingAttention,
)
from tests.covering import cover
from tests.keras_lengen.layers.encodings import table as encodings

BATCH, TOKENS, FEATURES = 2, 9, 12
RANDOM = np.random.default_rng(0)
STATES = RANDOM.normal(size=(BATCH, TOKENS, FEATURES)).astype("float32")
POSITIONS = np.sort(
    [RANDOM.choice(40, TOKENS, replace=False) for _ in range(BATCH)]
).astype("int32")

DECLARED = (
    *("stage", "causal_only", "uses_length", "reads_ranks"),
    *("uses_token_index", "requires_increasing_positions", "masks_keys"),
    *("num_rotations", "reads_key_positions", "reads_inputs"),
)
"""What attention reads of an encoding; equal ones take the same road."""


def list_encodings():
    """The first encoding of each kind."""
    kinds = {}
    for variant in encodings.VARIANTS:
        encoding = encodings.make(variant)
        draws = encoding.sampler.is_random
        if encoding.stage != "embeddings" and not draws:
            kind = tuple(getattr(encoding, name) for name in DECLARED)
            kinds.setdefault(kind, variant)
    return list(kinds.values())


ENCODINGS = list_encodings()

RULES = {
    "forgetting": (ForgettingAttention, {}),
    "geometric": (GeometricAttention, {}),
    "geometric without sum": (GeometricAttention, {"normalize": False}),
    "paths": (PaTHAttention, {}),
    "paths and gates": (PaTHAttention, {"use_forget_gate": True}),
    "paths and scaled gates": (
        PaTHAttention,
        {"use_forget_gate": True, "scale_gates": True},
    ),
    "sticks": (StickBreakingAttention, {}),
    "sticks with own key": (StickBreakingAttention, {"attend_current": True}),
}
WINDOWS = {
    "all keys": {},
    "window": {"sliding_window": 3},
    "window and first": {"sliding_window": 3, "sink_tokens": 2},
}
NORMALIZERS = {
    "softmax": {},
    "sinks": {"use_sinks": True},
    "entmax": {"use_entmax": True},
    "entmax and sinks": {"use_entmax": True, "use_sinks": True},
}
FACTORS = {
    "plain": {},
    "head": {"score_factor": "head"},
    "log length": {"score_factor": "log_length"},
    "adaptive": {"score_factor": "adaptive"},
    "trained length": {"train_length": 3},
    "floor": {"score_factor": LengthFactor(floor=3, slope=0.6)},
}
PARTS = {
    "biases": {},
    "shared keys": {"use_bias": False, "num_key_value_heads": 2},
    "gate": {"use_gate": True, "value_dim": 3, "output_shape": (2, 3)},
    "norm": {
        "use_query_key_norm": True,
        "norm_epsilon": 0.3,
        "scale_scores": False,
    },
    "cap": {"logit_soft_cap": 0.7, "use_bias": False},
}


def construct(kind, arguments, encoding, *options, **changes):
    """A layer without weights."""
    for option in options:
        arguments = {**arguments, **option}
    encoding = encodings.make(encoding)
    return kind(4, 4, encoding=encoding, **{**arguments, **changes})


def is_possible(rule, encoding, *options):
    """Whether a class takes an encoding and options."""
    kind, _ = RULES[rule]
    given = {name for option in look_up(options) for name in option}
    if kind is GeometricAttention and encoding != "NoPE":
        return False
    return not given & set(kind.unused_options)


def look_up(names):
    return [
        {**WINDOWS, **NORMALIZERS, **FACTORS, **PARTS}[name] for name in names
    ]


def list_subjects():
    """Arguments of `construct` by name."""
    rows = cover(
        *(ENCODINGS, list(WINDOWS), list(NORMALIZERS)),
        *(list(FACTORS), list(PARTS)),
    )
    found = {
        ", ".join(row): (MultiHeadAttention, {}, row[0], *look_up(row[1:]))
        for row in rows
    }
    rows = cover(
        *(list(RULES), ["NoPE", "RoPE", "ALiBi", "SelectiveRoPE"]),
        *(list(WINDOWS), list(NORMALIZERS), list(FACTORS), list(PARTS)),
        keep=is_possible,
    )
    return found | {
        ", ".join(row): (*RULES[row[0]], row[1], *look_up(row[2:]))
        for row in rows
    }


SUBJECTS = list_subjects()


def make(name, **changes):
    """A layer with random weights."""
    layer = construct(*SUBJECTS[name], **changes)
    layer.build(STATES.shape, STATES.shape)
    random = np.random.default_rng(1)
    layer.set_weights(
        [random.normal(size=weight.shape) / 2 for weight in layer.weights]
    )
    return layer


def copy(layer, **changes):
    """The same layer with other arguments."""
    again = type(layer).from_config({**layer.get_config(), **changes})
    again.build(STATES.shape, STATES.shape)
    again.set_weights(layer.get_weights())
    return again


def is_causal(layer, name):
    """Whether a subject is compared with a causal mask; half of them are."""
    only = layer.causal_only or layer.encoding.causal_only
    return only or list(SUBJECTS).index(name) % 2 == 0


def list_first():
    """Subjects in which each class, encoding and option occurs once."""
    missing, names = set(), []
    for name in SUBJECTS:
        parts = set(name.split(", "))
        if parts - missing:
            names.append(name)
            missing |= parts
    return names


FIRST = list_first()
