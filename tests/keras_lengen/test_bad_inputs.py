"""Every call refuses wrong values of its inputs, by the reader of each.

What a reader refuses is tested in `checks/test_inputs.py`. Here every argument
of every call gets a few wrong values, eager and in programs.
"""

import dataclasses
import functools
from collections.abc import Callable

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
    GridPositions,
    MultiHeadAttention,
    NTKRoPE,
    RandomizedRoPE,
    RoPE,
    SinusoidalEncoding,
    TransformerBlock,
)
from keras_lengen.models import (
    EncoderDecoder,
    LoopedDecoder,
    TransformerDecoder,
    TransformerEncoder,
)
from tests.keras_lengen.bad_inputs import (
    BATCH,
    HEAD_SIZES,
    HEADS,
    HOWS,
    IDS,
    MASK,
    MODEL_DIM,
    NAN,
    NO_TENSORS,
    OTHERS,
    SIZES,
    TOKENS,
    WIDTH,
    WRONG,
    WRONG_AT_RUN,
    beyond,
    compiled,
    describe,
    find_fault,
    floats,
    integers,
    kind_of,
    make,
    more,
    truth,
)
from tests.keras_lengen.models.small import eagerly


@dataclasses.dataclass(frozen=True)
class Call:
    """A right call, and wrong values of its arguments.

    Attributes:
        function: Takes the arguments by name.
        right: Right arguments.
        others: Names of arguments that it may have too.
        extra: Further wrong values by argument, or by a pair of the argument
            that is changed and of what the message must name.
        idle: Arguments that change nothing, of which a program that cannot
            raise may make what it likes.
    """

    function: Callable
    right: dict
    others: tuple = ()
    extra: dict = dataclasses.field(default_factory=dict)
    idle: tuple = ()

    def list_extra(self):
        for names, values in self.extra.items():
            for value in values:
                yield (
                    *(names if isinstance(names, tuple) else [names] * 2),
                    value,
                )

    def list_wrong(self, most=None):
        """Lists arguments to change, names, and values known to be wrong."""
        for name in (*self.right, *self.others):
            for value in WRONG.get(kind_of(name), [])[:most]:
                yield name, name, value
        yield from self.list_extra()

    def list_wrong_at_run(self, most=None):
        """Lists the same of values that a program takes for right ones."""
        arrays = self.arrays
        for name, right in arrays.items():
            if isinstance(right, np.ndarray) and kind_of(name) in WRONG_AT_RUN:
                for value in WRONG_AT_RUN[kind_of(name)](right)[:most]:
                    yield name, name, value
        for changed, named, value in self.list_extra():
            if changed in arrays and is_like(value, arrays[changed]):
                yield changed, named, value

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

    def find_faults(self, how, most=None):
        """A line for each value that is not refused."""
        arrays = self.arrays
        if not arrays and how != "eager":
            return
        others = {
            name: value
            for name, value in self.right.items()
            if name not in arrays
        }
        self.function(**self.right)
        if how == "eager":
            run = functools.partial(self.function, **others)
            wrong = self.list_wrong(most)
        else:
            function = functools.partial(self.function, **others)
            run = compiled(function, arrays, how)
            for leaf in keras.tree.flatten(run(**arrays)):
                assert np.isfinite(leaf).all()
            wrong = self.list_wrong_at_run(most)
        for changed, named, value in wrong:
            if how in ("XLA", "jit") and changed in self.idle:
                continue
            if how == "jit" and getattr(value, "dtype", "") == "int64":
                continue  # JAX takes the lower 32 bits.
            call = functools.partial(run, **{**arrays, changed: value})
            fault = find_fault(call, named, how)
            if fault is not None:
                yield f"{changed}={describe(value)}: {fault}"


def is_like(value, right):
    """Whether a program that was compiled for a right value takes another."""
    leaves, wanted = keras.tree.flatten(value), keras.tree.flatten(right)
    return len(leaves) == len(wanted) and all(
        isinstance(leaf, np.ndarray)
        and (leaf.ndim, leaf.dtype) == (each.ndim, each.dtype)
        and (leaf.dtype.kind != "f" or leaf.shape[2:] == each.shape[2:])
        for leaf, each in zip(leaves, wanted, strict=True)
    )


FEATURES = floats(BATCH, TOKENS, MODEL_DIM)
MEMORY = floats(BATCH, OTHERS, MODEL_DIM)
QUERY = floats(BATCH, TOKENS, HEADS, WIDTH)
LENGTH = np.array([6, 7], "float32")
WIDTHS = [
    FEATURES[..., :-1],
    np.concatenate([FEATURES, FEATURES], axis=-1),
    FEATURES[..., :0],
]


FIRST = ("embeddings", "query", "inputs", "tokens", "key", "keys")


def by_position(layer, **options):
    """A call of a layer whose first arguments Keras takes by position."""

    def call(**arguments):
        first = [arguments.pop(name) for name in FIRST if name in arguments]
        return layer(*first, **options, **arguments)

    return call


def encoding_calls(name):
    encoding = make(ENCODINGS[name])
    call = by_position(encoding)
    first = "embeddings" if encoding.stage == "embeddings" else "query"
    right = {first: FEATURES if first == "embeddings" else QUERY}
    if encoding.stage is not None:
        yield Call(by_position(make(ENCODINGS[name])), right)
    if first == "embeddings":
        extra = {"embeddings": [*WIDTHS, QUERY]}
        yield Call(call, {**right, "mask": MASK}, ("start_index",), extra)
        yield Call(call, {**right, "positions": IDS, "mask": MASK})
        return
    if encoding.stage is None:
        # It returns whatever it is given.
        extra = {"tokens": NO_TENSORS, "key_positions": [IDS]}
        extra["tokens", "query"] = extra.pop("tokens")
        yield Call(call, {"tokens": QUERY}, ("start_index",), extra)
    else:
        options = {"rotation": "length", "bias": "causal"}
        extra = {"query": [QUERY[..., :-2], QUERY[..., :0]]}
        extra["key_positions"] = [IDS]
        if encoding.stage == "bias":
            extra["query"].append(more(QUERY, 2))
        others = ("start_index", options[encoding.stage])
        yield Call(call, right, others, extra)
    keys = [QUERY[:1], more(QUERY, 0), QUERY[..., :-2], more(QUERY, 2)]
    extra = {"key": keys, ("key", "key|key_positions"): [more(QUERY, 1)]}
    if encoding.stage is None:
        extra = {}
    names = (first, "key") if encoding.stage else ("tokens", "keys")
    pair = dict.fromkeys(names, QUERY)
    places = {"positions": IDS, "key_positions": IDS}
    yield Call(call, {**pair, **places}, (), extra)


def attended_calls(name):
    """An encoding in attention to the same and to other tokens."""
    encoding = make(ENCODINGS[name])
    idle = ("positions", "key_positions")
    if encoding.stage is not None and not encoding.counts_tokens:
        idle = ()
    if encoding.stage == "embeddings":
        right = {"embeddings": FEATURES, "positions": IDS}
        yield Call(by_position(encoding), right)
        return
    attention = MultiHeadAttention(**HEAD_SIZES, encoding=encoding)

    def attend(query, value=None, **others):
        value = query if value is None else value
        return attention(query, value, use_causal_mask=True, **others)

    yield Call(attend, {"query": FEATURES, "positions": IDS}, idle=idle)
    if encoding.reads_inputs:
        return
    right = {
        "query": FEATURES,
        "value": MEMORY,
        "positions": integers(TOKENS),
        "key_positions": integers(OTHERS),
    }
    yield Call(attend, right, idle=idle)


def axial_calls(stage):
    cls = {"embeddings": SinusoidalEncoding, "rotation": RoPE, "bias": ALiBi}
    encoding = AxialEncoding(row=cls[stage](), column=cls[stage]())
    others = {"embeddings": "mask", "rotation": "length", "bias": "causal"}
    pair = (integers(TOKENS), IDS)
    first = "embeddings" if stage == "embeddings" else "query"
    yield Call(
        by_position(encoding),
        {
            first: FEATURES if first == "embeddings" else QUERY,
            "positions": pair,
        },
        (others[stage],),
        {
            "positions": [
                *((pair[0], bad) for bad in WRONG["positions"]),
                *((bad, pair[1]) for bad in WRONG["positions"]),
                *((beyond(pair[0]), pair[1]), (pair[0], beyond(pair[1]))),
                (*pair, IDS),
            ]
        },
    )


def sampler_calls(cls):
    sampler = make(cls)
    tokens = IDS if sampler.reads_tokens else floats(BATCH, TOKENS)
    wrong = [
        *(*NO_TENSORS, None, 3, [[1, 2]], [[1, 2], [3]], [], tokens[0]),
        np.full((BATCH, TOKENS), "x"),
        np.full((BATCH, TOKENS), None),
    ]
    if sampler.reads_tokens:
        wrong += [IDS[..., None], floats(BATCH, TOKENS), MASK]
        wrong += [IDS.astype("complex64"), beyond(IDS.astype("int64"))]
    scales = cls is SAMPLERS["InterpolatedPositions"]
    for training in (False, True):
        yield Call(
            by_position(sampler, training=training),
            {
                "tokens": tokens,
                "lengths": np.array([2, 3], "int32"),
                "reference_length": LENGTH,
            },
            (),
            {("tokens", "inputs"): wrong},
            () if scales else ("reference_length",),
        )


def attend_by(attention):
    """A call of an attention, to the query itself if there is no value."""

    def attend(query, value=None, key=None, **others):
        others.setdefault("use_causal_mask", attention.causal_only)
        own = [query if value is None else value]
        own += [] if key is None else [key]
        return attention(query, *own, **others)

    return attend


def attention_calls(name):
    """An attention to itself, to others, and with a cache."""
    cls = ATTENTIONS[name]
    encoding = NTKRoPE(original_length=4)
    if name == "GeometricAttention":
        encoding = None
    attend = attend_by(cls(**HEAD_SIZES, encoding=encoding))
    widths = [*WIDTHS, FEATURES[:, :, :, None]]
    tokens = truth(TOKENS, TOKENS)
    right = {"query": FEATURES, "positions": IDS}
    padding = {"query_mask": MASK, "value_mask": MASK, "length": LENGTH}
    yield Call(
        attend,
        {**right, **padding, "attention_mask": tokens},
        ("key_mask", "use_causal_mask", "return_attention_scores"),
        {
            "query": widths,
            "self_attention": ["x", 1],
            "cache_update_index": [0, "x", True],
        },
        ("length",) if encoding is None else (),
    )
    yield Call(
        attend,
        {
            **right,
            "segment_ids": IDS,
            "attention_mask": truth(BATCH, TOKENS, TOKENS),
        },
    )
    if name == "GeometricAttention":
        return
    heads = truth(BATCH, HEADS, TOKENS, TOKENS)
    yield Call(attend, {"query": FEATURES, "attention_mask": heads})
    if not cls.causal_only:
        attend = attend_by(cls(**HEAD_SIZES, encoding=ALiBi()))
        yield from other_calls(attend)
        yield from cache_calls(attend)


def other_calls(attend):
    counts = [FEATURES, MEMORY[:1], more(MEMORY, 0), MEMORY[:, :0]]
    right = {"query": FEATURES, "value": MEMORY}
    segments = {
        "segment_ids": IDS,
        "key_segment_ids": integers(BATCH, OTHERS),
    }
    yield Call(
        attend,
        {
            **right,
            "key": MEMORY,
            "positions": integers(TOKENS),
            "key_positions": integers(OTHERS),
            "value_mask": truth(BATCH, OTHERS),
        },
        (),
        {
            "value": [*WIDTHS, *counts],
            "key": [*WIDTHS, *counts],
            "query": [
                *(None, FEATURES[:1], more(FEATURES, 0), FEATURES[:0]),
            ],
        },
    )
    yield Call(attend, {**right, **segments})
    longer = floats(BATCH, OTHERS + 1, MODEL_DIM)
    causal = {**right, "use_causal_mask": True}
    yield Call(attend, causal, (), {("query", "use_causal_mask"): [longer]})


def cache_calls(attend):
    slots = 2 * TOKENS

    def call(query, **others):
        return attend(query, use_causal_mask=True, **others)[:-1]

    cache = tuple(floats(BATCH, slots, HEADS, WIDTH) for _ in range(2))
    shapes = [
        *((BATCH, slots), (1, slots, HEADS, WIDTH)),
        *((BATCH + 1, slots, HEADS, WIDTH), (BATCH, slots + 1, HEADS, WIDTH)),
        *((BATCH, slots, HEADS + 1, WIDTH), (BATCH, slots, HEADS, WIDTH + 1)),
        (BATCH, slots, 1, WIDTH),
    ]
    right = {
        "query": FEATURES,
        "key_positions": integers(slots),
        "cache": cache,
        "value_mask": truth(BATCH, slots),
        "cache_update_index": np.array(2, "int32"),
    }
    extra = {
        "cache_update_index": [
            np.array(index, "int32")
            for index in (-3, -1, slots - TOKENS + 1, slots)
        ],
        "cache": [
            *((), cache[:1], (cache[0], "x"), (cache[0], None)),
            *((cache[0], floats(*shape)) for shape in shapes),
            *((floats(*shape), cache[1]) for shape in shapes),
            tuple(floats(1, slots, HEADS, WIDTH) for _ in range(2)),
        ],
        "positions": [integers(TOKENS - 1), integers(slots), "x"],
        "key_positions": [integers(TOKENS), "x", [1]],
    }
    for scores in (False, True):
        weights = functools.partial(call, return_attention_scores=scores)
        yield Call(weights, right, ("attention_mask",), extra)


def block_calls():
    for normalization in ("post", "pre"):
        block = TransformerBlock(
            HEADS, encoding=RoPE(), normalization=normalization
        )
        yield Call(
            by_position(block),
            {"inputs": FEATURES, "positions": integers(TOKENS)},
            ("attention_mask", "mask", "length", "segment_ids"),
            {
                "inputs": WIDTHS,
                "memory": [MEMORY],
                "memory_mask": [truth(BATCH, OTHERS)],
                "memory_positions": [integers(OTHERS)],
                "memory_segment_ids": [integers(BATCH, OTHERS)],
                "cache": [*NO_TENSORS, 3, {"attention": None}, {"x": 1}],
                "cache_update_index": [0, "x"],
            },
        )
    block = TransformerBlock(
        HEADS, encoding=RoPE(), cross_attention=True, cross_encoding=ALiBi()
    )
    block.build(FEATURES.shape, MEMORY.shape)
    wrong = [*WIDTHS, None, MEMORY[:1], more(MEMORY, 0)]
    yield Call(
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
        {"inputs": WIDTHS, "memory": wrong},
    )
    sizes = [*NO_TENSORS, None, 0, -1, 2.5, NAN, True]
    yield Call(
        functools.partial(block.make_cache, memory=MEMORY),
        {"batch_size": BATCH, "length": TOKENS},
        (),
        {"batch_size": sizes, "length": sizes, "memory": [None, MEMORY[0]]},
    )


UNKNOWN = ("lenghts", "mask", "target_lenghts", "target_token_ids", "x")
NO_INPUTS = [*NO_TENSORS, 3, {"x": 1}, {1: 2}]


def model_calls(cls, prefix=""):
    """A model with lengths, masks, positions and documents."""
    arguments = {"loops": 2} if cls is LoopedDecoder else {}
    model = cls(**SIZES, **arguments, encoding=NTKRoPE(original_length=4))

    def call(inputs=None, **others):
        return model(others if inputs is None else inputs)

    both = cls is EncoderDecoder
    ids = f"{prefix}ids" if prefix else "token_ids"
    right = {"token_ids": IDS, **({"target_ids": IDS} if both else {})}
    extra = {name: [1] for name in (*UNKNOWN, "target_memory", "memory_masks")}
    extra["inputs", "inputs|token_ids"] = NO_INPUTS
    if both and not prefix:
        extra["token_ids", "token_ids|lengths"] = [IDS[:, :0]]
    yield Call(
        call,
        {
            **right,
            f"{prefix}lengths": np.array([2, 3], "int32"),
            f"{prefix}positions": IDS,
            f"{prefix}reference_length": LENGTH,
        },
        (),
        {**extra, f"{prefix}padding_mask": [MASK]},
    )
    looped = {"loops": np.array([1, 2], "int32"), "scored": MASK}
    sides = ("", "target_") if both else ("",)
    yield Call(
        call,
        {
            **right,
            f"{prefix}padding_mask": MASK,
            **{f"{side}segment_ids": IDS for side in sides},
            **(looped if cls is LoopedDecoder else {}),
        },
    )
    if not both:
        wide = {ids: IDS.astype("int64"), "lengths": np.array([2, 3], "int64")}
        yield Call(call, wide)


def memory_calls():
    model = TransformerDecoder(
        **SIZES, encoding=RoPE(), cross_attention=True, cross_encoding=ALiBi()
    )
    right = {"token_ids": IDS, "memory": MEMORY}
    wrong = [None, MEMORY[:1], MEMORY[:, :0], more(MEMORY, 0), *WIDTHS]
    for others in (
        {
            "memory_mask": truth(BATCH, OTHERS),
            "memory_positions": integers(OTHERS),
        },
        {
            "segment_ids": IDS,
            "memory_segment_ids": integers(BATCH, OTHERS),
        },
    ):
        yield Call(
            lambda **inputs: model(inputs),
            {**right, **others},
            (),
            {("memory", r"memory\w*"): wrong},
        )


def short_calls(cls):
    """Decoders whose encoding has fewer positions than tokens."""
    evaluations = [{}]
    if "evaluation" in cls.arguments():
        evaluations = [
            {"evaluation": each} for each in ("random", "even", "ordinal")
        ]
    for evaluation in evaluations:
        encoding = make(cls, max_position=TOKENS, **evaluation)
        model = TransformerDecoder(**SIZES, encoding=encoding)
        longer = {("token_ids", "max_position"): [more(IDS, 1)]}
        yield Call(
            lambda token_ids, model=model: model(token_ids),
            {"token_ids": IDS},
            (),
            longer,
        )


GENERATE = {
    "max_new_tokens": ["x", 0],
    "temperature": [-1, 1e39],
    "top_k": [0, 8],
    "top_p": [0, 1.5],
    "end_token": [-1, 7, 2.5, [], [1, 7]],
    "repetition_penalty": [0],
    # With a temperature of 1.
    "num_beams": [0, 2],
    "length_penalty": [-1, 0.5],
    "seed": [-1],
    "jit_compile": [1],
    "return_logits": [1],
}
"""Wrong values of the options of `generate`."""


def generate_calls(cls, method):
    model = cls(**{**SIZES, "output_size": None}, encoding=RoPE())
    own = "target_" if cls is EncoderDecoder else ""
    right = {"token_ids": IDS}
    own_ids = "token_ids"
    if own:
        right["target_ids"], own_ids = IDS, "target_ids"

    def generate(max_new_tokens=3, **others):
        options = {"temperature": 1.0, "jit_compile": False}
        for option in GENERATE.keys() & others.keys():
            options[option] = others.pop(option)
        inputs = others.pop("inputs", others)
        with eagerly():
            result = getattr(model, method)(inputs, max_new_tokens, **options)
            return result if method == "generate" else next(result)

    options = {
        name: values
        for name, values in GENERATE.items()
        if method == "generate" or name != "return_logits"
    }
    names = ("positions", "lengths", "padding_mask", "reference_length")
    yield Call(
        generate,
        right,
        tuple(f"{side}{name}" for side in {"", own} for name in names),
        {
            **options,
            # Nothing to start from.
            own_ids: [np.zeros((BATCH, 0), "int32"), IDS[:0]],
            f"{own}lengths": [[0, 2]],
            f"{own}padding_mask": [~MASK],
            f"{own}lenghts": [1],
            ("inputs", "inputs|token_ids"): [*NO_TENSORS, None, 3],
        },
    )


CALLS = {
    **{name: functools.partial(encoding_calls, name) for name in ENCODINGS},
    **{
        f"{name} in attention": functools.partial(attended_calls, name)
        for name in ENCODINGS
    },
    **{
        f"{name} of few positions": functools.partial(short_calls, cls)
        for name, cls in ENCODINGS.items()
        if "max_position" in cls.arguments()
    },
    **{
        f"AxialEncoding of {stage}": functools.partial(axial_calls, stage)
        for stage in ("embeddings", "rotation", "bias")
    },
    **{
        cls.__name__: functools.partial(sampler_calls, cls)
        for cls in (*SAMPLERS.values(), *TOKEN_SAMPLERS.values(), GridPositions)
    },
    **{name: functools.partial(attention_calls, name) for name in ATTENTIONS},
    "TransformerBlock": block_calls,
    **{
        cls.__name__: functools.partial(model_calls, cls)
        for cls in (
            *(TransformerEncoder, TransformerDecoder),
            *(LoopedDecoder, EncoderDecoder),
        )
    },
    "target": functools.partial(model_calls, EncoderDecoder, "target_"),
    "memory": memory_calls,
    **{
        f"{cls.__name__}.{method}": functools.partial(
            generate_calls, cls, method
        )
        for cls in (TransformerDecoder, EncoderDecoder)
        for method in ("generate", "stream")
    },
}
"""What makes the calls of each subject."""

EAGER = [
    # One encoding for each `call` of a class.
    *{cls.call: name for name, cls in reversed(ENCODINGS.items())}.values(),
    "AxialEncoding of rotation",
    *("RandomizedPositions", *TOKEN_SAMPLERS),
    *(*ATTENTIONS, "TransformerBlock"),
    *("TransformerEncoder", "LoopedDecoder", "EncoderDecoder", "target"),
    *("memory", "TransformerDecoder.generate", "EncoderDecoder.stream"),
]
"""One subject of each kind, for what they know at once."""

XLA = [
    *("RelativeEncoding in attention", "FIRE in attention"),
    *("SelectiveRoPE in attention", "LearnedEncoding of few positions"),
    *("RandomizedPositions", "WarpedPositions", "InterpolatedPositions"),
    "memory",
]
COMPILED = [
    *("LearnedEncoding in attention", "RandomizedRoPE of few positions"),
    *("MultiHeadAttention", "TransformerBlock", "TransformerEncoder"),
    *("LoopedDecoder", "target", *XLA),
]
"""One subject of each kind, for programs; few where compilation is slow."""

QUICK = {
    "eager": EAGER,
    "graph": ("MultiHeadAttention", "RandomizedPositions", "memory"),
    "XLA": ("RelativeEncoding in attention", "WarpedPositions"),
}
"""What the default run has."""

if "jit" in HOWS:
    # On JAX the first call of each operation is slow.
    QUICK = {
        "jit": (
            *("RelativeEncoding in attention", "TransformerEncoder"),
            *("RandomizedPositions", "WarpedPositions"),
        ),
    }


def list_rows():
    return [
        pytest.param(
            name,
            how,
            marks=() if name in QUICK.get(how, ()) else pytest.mark.product,
        )
        for how in HOWS
        for name in {"eager": EAGER, "XLA": XLA}.get(how, COMPILED)
    ]


def check(name, how, most=None):
    faults = [
        fault for call in CALLS[name]() for fault in call.find_faults(how, most)
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(("name", "how"), list_rows())
def test_every_argument_is_read(name, how):
    # Each shape is another program of XLA.
    check(name, how, most=1 if how == "XLA" else 2)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", CALLS)
def test_every_value_of_every_argument(name, how):
    check(name, how)


@pytest.mark.skipif("graph" not in HOWS, reason="needs TensorFlow")
def test_a_saved_model_checks_its_inputs(tmp_path):
    import tensorflow as tf

    encoding = RandomizedRoPE(max_position=TOKENS, evaluation="even")
    model = TransformerEncoder(**SIZES, encoding=encoding)
    inputs = {
        "token_ids": keras.InputSpec("int32", (None, None), name="token_ids"),
        "lengths": keras.InputSpec("int32", (None,), name="lengths"),
    }
    model.export(tmp_path, input_signature=[inputs], verbose=False)
    # Its variables live as long as it does.
    saved = tf.saved_model.load(str(tmp_path))

    def call(tokens=TOKENS, token_id=0, length=3):
        return saved.serve(
            {
                "token_ids": tf.fill((2, tokens), token_id),
                "lengths": tf.fill((2,), length),
            }
        )

    assert np.isfinite(call()).all()
    for name, wrong in (
        ("max_position", {"tokens": 7}),
        ("token_ids", {"token_id": 7}),
        ("lengths", {"length": 7}),
    ):
        refusal = functools.partial(call, **wrong)
        assert find_fault(refusal, name, "graph") is None
