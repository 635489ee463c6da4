"""Every call refuses wrong values of its inputs, by the reader of each.

What a reader refuses is tested in `checks/test_inputs.py`. Here every argument
of every call gets a few wrong values, eager and in programs.
"""

import functools

import keras
import numpy as np
import pytest

from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    TOKEN_SAMPLERS,
    ALiBi,
    AxialEncoding,
    MultiHeadAttention,
    NTKRoPE,
    RoPE,
    TransformerBlock,
)
from tests.keras_lengen.bad_inputs import (
    BATCH,
    HEAD_SIZES,
    HEADS,
    HOWS,
    IDS,
    MASK,
    MODEL_DIM,
    OTHERS,
    SILENT,
    TOKENS,
    WIDTH,
    WRONG,
    WRONG_AT_RUN,
    beyond,
    compiled,
    find_fault,
    floats,
    integers,
    kind_of,
    make,
    more,
    truth,
)
from tests.keras_lengen.models import small

FEATURES = floats(BATCH, TOKENS, MODEL_DIM)
MEMORY = floats(BATCH, OTHERS, MODEL_DIM)
QUERY = floats(BATCH, TOKENS, HEADS, WIDTH)
LENGTH = np.array([6, 7], "float32")
WIDTHS = [
    FEATURES[..., :-1],
    np.concatenate([FEATURES, FEATURES], axis=-1),
    FEATURES[..., :0],
]
OTHER_MEMORY = [MEMORY[:1], more(MEMORY, 0), MEMORY[:, :0]]

KNOWN_WRONG = {
    **{kind: ["x", rows[0][1]] for kind, rows in WRONG.items()},
    "attention_mask": [
        *("x", True, np.zeros((TOKENS, TOKENS), "float32")),
        truth(TOKENS, TOKENS + 7),
        truth(BATCH, HEADS + 1, TOKENS, TOKENS),
    ],
    "flag": ["x", 1],
}
"""What a call knows to be wrong, by the reader."""


def assert_refuses(how, function, right, others=(), extra=None, idle=()):
    """Asserts that a call refuses wrong values of its arguments.

    `others` are names of arguments that it may have too. `extra` has further
    wrong values by argument, or by a pair of the argument that is changed and
    of what the message must name. `idle` arguments change nothing, and a
    program that cannot raise may make of them what it likes.
    """
    arrays = {
        name: value for name, value in right.items() if is_like(value, value)
    }
    rest = {name: right[name] for name in right.keys() - arrays.keys()}
    run = functools.partial(function, **rest)
    run(**arrays)
    if how == "eager":
        found = {
            name: KNOWN_WRONG.get(kind_of(name), [])
            for name in [*right, *others]
        }
    else:
        run = compiled(run, arrays, how)
        for leaf in keras.tree.flatten(run(**arrays)):
            assert np.isfinite(leaf).all()
        # Each shape is another program of XLA.
        most = 1 if how == "XLA" else 2
        found = {
            name: WRONG_AT_RUN[kind_of(name)](array)[:most]
            for name, array in arrays.items()
            if kind_of(name) in WRONG_AT_RUN
        }
    wrong = [(name, name, value) for name in found for value in found[name]]
    for names, values in (extra or {}).items():
        changed, named = names if isinstance(names, tuple) else (names, names)
        wrong += [
            (changed, named, value)
            for value in values
            if how == "eager" or is_like(value, arrays.get(changed))
        ]
    faults = []
    for changed, named, value in wrong:
        if how in SILENT and changed in idle:
            continue
        if how == "jit" and getattr(value, "dtype", "") == "int64":
            continue  # JAX takes the lower 32 bits.
        call = functools.partial(run, **{**arrays, changed: value})
        fault = find_fault(call, named, how)
        if fault is not None:
            faults.append((changed, value, fault))
    assert not faults


def is_like(value, right):
    """Whether a program that was compiled for a right value takes another."""
    leaves, wanted = keras.tree.flatten(value), keras.tree.flatten(right)
    return len(leaves) == len(wanted) and all(
        isinstance(leaf, np.ndarray)
        and isinstance(each, np.ndarray)
        and (leaf.ndim, leaf.dtype) == (each.ndim, each.dtype)
        and (leaf.dtype.kind != "f" or leaf.shape[2:] == each.shape[2:])
        for leaf, each in zip(leaves, wanted, strict=True)
    )


FIRST = ("embeddings", "query", "inputs", "tokens", "key", "keys")


def by_position(layer, **options):
    """A call of a layer whose first arguments Keras takes by position."""

    def call(**arguments):
        first = [arguments.pop(name) for name in FIRST if name in arguments]
        return layer(*first, **options, **arguments)

    return call


def encoding_calls(refuses, name):
    encoding = make(ENCODINGS[name])
    call = by_position(encoding)
    places = {"positions": IDS, "key_positions": IDS}
    if encoding.stage == "embeddings":
        right = {"embeddings": FEATURES, "mask": MASK}
        extra = {"embeddings": [*WIDTHS, QUERY]}
        refuses(call, right, ("start_index",), extra)
        refuses(call, {**right, "positions": IDS})
        return
    if encoding.stage is None:
        # It returns whatever it is given.
        extra = {("tokens", "query"): ["x"], "key_positions": [IDS]}
        refuses(call, {"tokens": QUERY}, ("start_index",), extra)
        refuses(call, {"tokens": QUERY, "keys": QUERY, **places})
        return
    extra = {"query": [QUERY[..., :-2], QUERY[..., :0]]}
    if encoding.stage == "bias":
        extra["query"].append(more(QUERY, 2))
    option = {"rotation": "length", "bias": "causal"}[encoding.stage]
    extra["key_positions"] = [IDS]
    refuses(call, {"query": QUERY}, ("start_index", option), extra)
    keys = [QUERY[:1], more(QUERY, 0), QUERY[..., :-2], more(QUERY, 2)]
    extra = {"key": keys, ("key", "key|key_positions"): [more(QUERY, 1)]}
    refuses(call, {"query": QUERY, "key": QUERY, **places}, (), extra)


def attended_calls(refuses, name):
    """An encoding in attention to the same and to other tokens."""
    encoding = make(ENCODINGS[name])
    idle = ("positions", "key_positions") if encoding.uses_token_index else ()
    attention = MultiHeadAttention(**HEAD_SIZES, encoding=encoding)
    attend = functools.partial(attend_by(attention), use_causal_mask=True)
    right = {"query": FEATURES, "positions": integers(TOKENS)}
    refuses(attend, right, idle=idle)
    if not encoding.reads_inputs:
        places = {"key_positions": integers(OTHERS), "value": MEMORY}
        refuses(attend, {**right, **places}, idle=idle)


def axial_calls(refuses, _):
    encoding = AxialEncoding(row=RoPE(), column=RoPE())
    row, column = integers(TOKENS), IDS
    pairs = [
        *((row, value) for _, value in WRONG["positions"]),
        *((value, column) for _, value in WRONG["positions"]),
        *((beyond(row), column), (row, beyond(column)), (row, column, IDS)),
    ]
    right = {"query": QUERY, "positions": (row, column)}
    refuses(by_position(encoding), right, ("length",), {"positions": pairs})


def sampler_calls(refuses, name):
    sampler = make({**SAMPLERS, **TOKEN_SAMPLERS}[name])
    tokens = IDS if sampler.reads_tokens else floats(BATCH, TOKENS)
    wrong = [
        *("x", None, 3, [[1, 2], [3]], tokens[0]),
        np.full((BATCH, TOKENS), None),
    ]
    if sampler.reads_tokens:
        wrong += [IDS[..., None], MASK, beyond(IDS.astype("int64"))]
    right = {
        "tokens": tokens,
        "lengths": np.array([2, 3], "int32"),
        "reference_length": LENGTH,
    }
    scales = name == "InterpolatedPositions"
    for training in (False, True):
        refuses(
            by_position(sampler, training=training),
            right,
            extra={("tokens", "inputs"): wrong},
            idle=() if scales else ("reference_length",),
        )


def attend_by(attention):
    """A call of an attention, to the query itself if there is no value."""

    def attend(query, value=None, key=None, **others):
        others.setdefault("use_causal_mask", attention.causal_only)
        own = [query if value is None else value]
        own += [] if key is None else [key]
        return attention(query, *own, **others)

    return attend


def attention_calls(refuses, name):
    """An attention to itself, to others, and with a cache."""
    cls = ATTENTIONS[name]
    geometric = name == "GeometricAttention"
    encoding = None if geometric else NTKRoPE(original_length=4)
    attend = attend_by(cls(**HEAD_SIZES, encoding=encoding))
    right = {"query": FEATURES, "positions": IDS}
    refuses(
        attend,
        {
            **right,
            "query_mask": MASK,
            "value_mask": MASK,
            "length": LENGTH,
            "attention_mask": truth(TOKENS, TOKENS),
        },
        ("key_mask", "use_causal_mask", "return_attention_scores"),
        {
            "query": [*WIDTHS, FEATURES[:, :, :, None]],
            "self_attention": ["x", 1],
            "cache_update_index": [0, "x", True],
        },
        ("length",) if geometric else (),
    )
    mask = truth(BATCH, TOKENS, TOKENS)
    refuses(attend, {**right, "segment_ids": IDS, "attention_mask": mask})
    if name == "MultiHeadAttention":
        heads = truth(BATCH, HEADS, TOKENS, TOKENS)
        refuses(attend, {"query": FEATURES, "attention_mask": heads})
        attend = attend_by(cls(**HEAD_SIZES, encoding=ALiBi()))
        other_calls(refuses, attend)
        cache_calls(refuses, attend)


def other_calls(refuses, attend):
    wrong = [*WIDTHS, FEATURES, *OTHER_MEMORY]
    right = {
        "query": FEATURES,
        "value": MEMORY,
        "key": MEMORY,
        "positions": integers(TOKENS),
        "key_positions": integers(OTHERS),
        "value_mask": truth(BATCH, OTHERS),
        "segment_ids": IDS,
        "key_segment_ids": integers(BATCH, OTHERS),
    }
    queries = [None, FEATURES[:1], more(FEATURES, 0), FEATURES[:0]]
    refuses(attend, right, (), {"value": wrong, "key": wrong, "query": queries})
    causal = {"query": FEATURES, "value": MEMORY, "use_causal_mask": True}
    longer = floats(BATCH, OTHERS + 1, MODEL_DIM)
    refuses(attend, causal, (), {("query", "use_causal_mask"): [longer]})


def cache_calls(refuses, attend):
    slots = 2 * TOKENS

    def call(query, **others):
        options = {"use_causal_mask": True, "return_attention_scores": True}
        return attend(query, **options, **others)[:-1]

    names = ("key", "value")
    cache = {name: floats(BATCH, slots, HEADS, WIDTH) for name in names}
    right = cache["key"]
    others = [
        *("x", None, right[..., 0, 0], right[:1]),
        *(more(right, axis) for axis in range(4)),
    ]
    refuses(
        call,
        {
            "query": FEATURES,
            "key_positions": integers(slots),
            "cache": cache,
            "value_mask": truth(BATCH, slots),
            "cache_update_index": np.array(2, "int32"),
        },
        ("attention_mask",),
        {
            "cache_update_index": [
                np.array(index, "int32")
                for index in (-3, -1, slots - TOKENS + 1, slots)
            ],
            "cache": [
                *((), {}, {"key": right}, {**cache, "gate": right}),
                *({**cache, name: other} for name in names for other in others),
            ],
            "positions": [integers(TOKENS - 1), integers(slots), "x"],
            "key_positions": [integers(TOKENS), "x", [1]],
        },
    )


def block_calls(refuses, _):
    refuses(
        by_position(TransformerBlock(HEADS, encoding=RoPE())),
        {"inputs": FEATURES, "positions": integers(TOKENS)},
        ("attention_mask", "mask", "length", "segment_ids"),
        {
            "inputs": WIDTHS,
            "memory": [MEMORY],
            "memory_mask": [truth(BATCH, OTHERS)],
            "memory_positions": [integers(OTHERS)],
            "memory_segment_ids": [integers(BATCH, OTHERS)],
            "cache": ["x", 3, {"attention": None}, {"x": 1}],
            "cache_update_index": [0, "x"],
        },
    )
    block = TransformerBlock(
        HEADS, encoding=RoPE(), cross_attention=True, cross_encoding=ALiBi()
    )
    block.build(FEATURES.shape, MEMORY.shape)
    refuses(
        by_position(block),
        {
            "inputs": FEATURES,
            "memory": MEMORY,
            "mask": MASK,
            "memory_mask": truth(BATCH, OTHERS),
            "positions": integers(TOKENS),
            "memory_positions": integers(OTHERS),
        },
        (),
        {"inputs": WIDTHS, "memory": [*WIDTHS, None, *OTHER_MEMORY[:2]]},
    )


UNKNOWN = ("lenghts", "mask", "memory", "target_lenghts", "target_memory")


def model_calls(refuses, name):
    """A model with lengths, masks, positions and documents."""
    makes = {"encoder": small.encoder, "looped": small.looped_decoder}
    make_model = makes.get(name, small.encoder_decoder)
    model = make_model(NTKRoPE(original_length=4))
    prefix = "target_" if name == "target" else ""

    def call(inputs=None, **others):
        return model(others if inputs is None else inputs)

    both = make_model is small.encoder_decoder
    right = {"token_ids": IDS, **({"target_ids": IDS} if both else {})}
    extra = {name: [1] for name in UNKNOWN}
    extra["inputs", "inputs|token_ids"] = ["x", {}, 3, {"x": 1}, {1: 2}]
    extra[f"{prefix}padding_mask"] = [MASK]
    if both:
        extra["inputs", "target_ids"] = [IDS]
    if both and not prefix:
        extra["token_ids", "token_ids|lengths"] = [IDS[:, :0]]
    refuses(
        call,
        {
            **right,
            f"{prefix}lengths": np.array([2, 3], "int32"),
            f"{prefix}positions": IDS,
            f"{prefix}reference_length": LENGTH,
        },
        (),
        extra,
    )
    loops = {"loops": np.array([1, 2], "int32"), "scored": MASK}
    looped = loops if name == "looped" else {}
    sides = ("", "target_") if both else ("",)
    refuses(
        call,
        {
            **right,
            f"{prefix}padding_mask": MASK,
            **{f"{side}segment_ids": IDS for side in sides},
            **looped,
        },
    )


def memory_calls(refuses, _):
    model = small.decoder(RoPE(), cross_attention=True, cross_encoding=ALiBi())
    right = {
        "token_ids": IDS,
        "memory": MEMORY,
        "memory_mask": truth(BATCH, OTHERS),
        "memory_positions": integers(OTHERS),
        "segment_ids": IDS,
        "memory_segment_ids": integers(BATCH, OTHERS),
    }
    extra = {("memory", r"memory\w*"): [None, *OTHER_MEMORY, *WIDTHS]}
    refuses(lambda **inputs: model(inputs), right, (), extra)


def short_calls(refuses, name):
    """A decoder whose encoding has fewer positions than tokens."""
    model = small.decoder(make(ENCODINGS[name], max_position=TOKENS))
    longer = {("token_ids", "max_position"): [more(IDS, 1)]}
    right = {"token_ids": IDS}
    refuses(lambda **inputs: model(inputs), right, (), longer)


GENERATE = {
    **{"max_new_tokens": [0], "temperature": [-1], "repetition_penalty": [0]},
    **{"top_k": [0, 8], "top_p": [0, 1.5], "end_token": [-1, 7, [], [1, 7]]},
    # With a temperature of 1.
    **{"num_beams": [0, 2], "length_penalty": [-1, 0.5]},
    **{"seed": [-1], "jit_compile": [1]},
}
"""Wrong values of the options of `generate`."""


def generate_calls(refuses, name):
    make_model, own, method = {
        "decoder": (small.decoder, "", "generate"),
        "encoder-decoder": (small.encoder_decoder, "target_", "stream"),
    }[name]
    model = make_model(RoPE(), output_size=None)
    own_ids = "target_ids" if own else "token_ids"

    def generate(max_new_tokens=3, **others):
        options = {"temperature": 1.0, "jit_compile": False}
        for option in GENERATE.keys() & others.keys():
            options[option] = others.pop(option)
        inputs = others.pop("inputs", others)
        with small.eagerly():
            result = getattr(model, method)(inputs, max_new_tokens, **options)
            return result if method == "generate" else next(result)

    names = ("positions", "lengths", "padding_mask", "reference_length")
    refuses(
        generate,
        {"token_ids": IDS, own_ids: IDS},
        tuple(f"{own}{name}" for name in names),
        {
            **GENERATE,
            # Nothing to start from.
            own_ids: [np.zeros((BATCH, 0), "int32"), IDS[:0]],
            f"{own}lengths": [[0, 2]],
            f"{own}padding_mask": [~MASK],
            f"{own}lenghts": [1],
            ("inputs", "inputs|token_ids"): ["x", {}, None, 3],
        },
    )


EAGER = [
    # One encoding for each `call` of a class.
    *((encoding_calls, "NoPE"), (encoding_calls, "SinusoidalEncoding")),
    *((encoding_calls, "RoPE"), (encoding_calls, "SelectiveRoPE")),
    (encoding_calls, "RelativeEncoding"),
    (axial_calls, "AxialEncoding"),
    (sampler_calls, "RandomizedPositions"),
    *((sampler_calls, name) for name in TOKEN_SAMPLERS),
    *((attention_calls, name) for name in ATTENTIONS),
    (block_calls, "TransformerBlock"),
    *((model_calls, name) for name in ("encoder", "looped")),
    *((model_calls, name) for name in ("encoder-decoder", "target")),
    (memory_calls, "decoder"),
    *((generate_calls, name) for name in ("decoder", "encoder-decoder")),
]
XLA = [
    *((attended_calls, name) for name in ("RelativeEncoding", "FIRE")),
    (attended_calls, "SelectiveRoPE"),
    (short_calls, "LearnedEncoding"),
    (sampler_calls, "WarpedPositions"),
    (sampler_calls, "InterpolatedPositions"),
    (sampler_calls, "RandomizedPositions"),
    (memory_calls, "decoder"),
]
PROGRAMS = [
    *XLA,
    (short_calls, "RandomizedRoPE"),
    (attention_calls, "MultiHeadAttention"),
    (block_calls, "TransformerBlock"),
    *((model_calls, name) for name in ("encoder", "looped", "target")),
]
"""One subject of each kind, for programs; few where compilation is slow."""


def is_quick(calls, name, how):
    if how == "eager":
        # On JAX the first call of each operation is slow.
        return "jit" not in HOWS
    return name in ("RelativeEncoding", "WarpedPositions")


@pytest.mark.parametrize(
    ("calls", "name", "how"),
    [
        pytest.param(
            *subject,
            how,
            marks=() if is_quick(*subject, how) else pytest.mark.product,
        )
        for how in HOWS
        for subject in {"eager": EAGER, "XLA": XLA}.get(how, PROGRAMS)
    ],
)
def test_every_argument_is_read(calls, name, how):
    calls(functools.partial(assert_refuses, how), name)


@pytest.mark.skipif("graph" not in HOWS, reason="needs TensorFlow")
def test_a_saved_model_checks_its_inputs(tmp_path):
    import tensorflow as tf

    encoding = make(ENCODINGS["RandomizedRoPE"], max_position=TOKENS)
    model = small.encoder(encoding)
    model(IDS)
    model.export(tmp_path, verbose=False)
    # Its variables live as long as it does.
    saved = tf.saved_model.load(str(tmp_path))
    assert np.isfinite(saved.serve(IDS)).all()
    for named, wrong in ("token_ids", IDS + 7), ("max_position", more(IDS, 1)):
        call = functools.partial(saved.serve, wrong)
        assert find_fault(call, named, "graph") is None
