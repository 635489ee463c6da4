"""Bad values of the arguments of every public class."""

import functools

import numpy as np

from keras_lengen.checks.arguments import constructor_arguments
from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    TOKEN_SAMPLERS,
    AxialEncoding,
    GridPositions,
    OrdinalPositions,
    RoPE,
    TransformerBlock,
)
from keras_lengen.models import (
    EncoderDecoder,
    LoopedDecoder,
    TransformerDecoder,
    TransformerEncoder,
)
from tests.keras_lengen.bad_inputs import HEAD_SIZES, SIZES, Case
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.encodings.table import HEADS
from tests.keras_lengen.layers.positions import table as samplers

CLASSES = {
    **{
        name: (cls, encodings.ROWS[name].arguments)
        for name, cls in ENCODINGS.items()
    },
    **{
        name: (cls, samplers.ROWS[name].arguments)
        for name, cls in SAMPLERS.items()
    },
    **{
        name: (cls, samplers.TOKEN_ROWS[name].arguments)
        for name, cls in TOKEN_SAMPLERS.items()
    },
    **{name: (cls, HEAD_SIZES) for name, cls in ATTENTIONS.items()},
    "AxialEncoding": (AxialEncoding, {"row": RoPE(), "column": RoPE()}),
    "GridPositions": (GridPositions, {"width": 3}),
    "TransformerBlock": (TransformerBlock, {"num_heads": HEADS}),
    "TransformerEncoder": (TransformerEncoder, SIZES),
    "TransformerDecoder": (TransformerDecoder, SIZES),
    "LoopedDecoder": (LoopedDecoder, {**SIZES, "loops": 2}),
    "EncoderDecoder": (EncoderDecoder, SIZES),
}
"""Public classes by name, and arguments to construct them with."""

VALUES = {
    "text": "x",
    "empty text": "",
    "bytes": b"x",
    "None": None,
    "True": True,
    "nan": float("nan"),
    "float32 nan": np.float32("nan"),
    "inf": float("inf"),
    "-inf": -float("inf"),
    "-1": -1,
    "0": 0,
    "2.5": 2.5,
    "2**40": 2**40,
    "1e39": 1e39,
    "1e-46": 1e-46,
    "1j": 1j,
    "[]": [],
    "{}": {},
    "(1, 2)": (1, 2),
    "['x']": ["x"],
    "array": np.ones(3),
    "object": object(),
    "class": RoPE,
    "sampler": OrdinalPositions(),
    "encoding": RoPE(),
}
"""What is wrong for almost every argument of a constructor."""

FLAG, OPTIONAL = ("True",), ("None",)
RIGHT = {
    "activation": OPTIONAL,
    "asymmetry": ("-1", "0", "2.5"),
    "attend_current": FLAG,
    "attention": OPTIONAL,
    "attention_dropout": ("0",),
    "beta_fast": ("2.5",),
    "beta_slow": ("2.5",),
    "chunk_size": OPTIONAL,
    "column": ("None", "sampler"),
    "cross_attention": FLAG,
    "cross_encoding": ("None", "encoding"),
    "digits": ("(1, 2)",),
    "dropout": ("0",),
    "embedding_dropout": ("None", "0"),
    "embedding_scale": ("None", "-1", "0", "2.5", "2**40"),
    "embeddings_initializer": OPTIONAL,
    "encoding": ("None", "encoding"),
    "feedforward_dim": OPTIONAL,
    "head_fraction": ("0",),
    "head_scales": ("(1, 2)",),
    "include_zero": FLAG,
    "initializer": OPTIONAL,
    "items": ("(1, 2)",),
    "kernel_initializer": OPTIONAL,
    "logit_scale": ("-1", "0", "2.5", "2**40"),
    "max_global_scale": ("2.5",),
    "max_global_shift": ("0", "2.5"),
    "max_local_shift": ("0", "2.5"),
    "max_shift": OPTIONAL,
    "max_wavelength": ("2.5", "2**40"),
    "normalization": OPTIONAL,
    "normalize": FLAG,
    "num_decoder_layers": OPTIONAL,
    "num_key_value_heads": OPTIONAL,
    "ordered": FLAG,
    "output_dim": OPTIONAL,
    "output_size": OPTIONAL,
    "rms_norm": FLAG,
    "row": ("None", "sampler"),
    "sampler": ("None", "sampler"),
    "scale_base": ("2.5",),
    "scale_scores": FLAG,
    "scaling_factor": ("2.5",),
    "score_factor": OPTIONAL,
    "seed": ("None", "0"),
    "separators": ("[]",),
    "share_layers": FLAG,
    "slope": ("None", "0", "2.5"),
    "table_scale": ("2.5",),
    "tail_fraction": ("0",),
    "target_vocabulary_size": OPTIONAL,
    "threshold": ("2.5",),
    "use_bias": FLAG,
    "use_causal_mask": FLAG,
    "value_dim": OPTIONAL,
    "windowed_heads": OPTIONAL,
    "AbacusPositions.max_shift": (),
    "AxialEncoding.column": ("encoding",),
    "AxialEncoding.row": ("encoding",),
    "AxialEncoding.sampler": ("None", "sampler"),
    "CoPE.sampler": ("None", "sampler"),
    "CoupledPositions.max_position": OPTIONAL,
    "ForgettingAttention.kernel_initializer": (),
    "GeometricAttention.encoding": OPTIONAL,
    "GeometricAttention.kernel_initializer": (),
    "GridPositions.width": OPTIONAL,
    "InterpolatedPositions.scaling_factor": ("None", "2.5"),
    "MultiHeadAttention.kernel_initializer": (),
    "NTKRoPE.original_length": OPTIONAL,
    "RandomizedALiBi.include_zero": ("None", "True"),
    "RandomizedRelativeEncoding.include_zero": ("None", "True"),
    "ShawEncoding.max_distance": ("0",),
    "StickBreakingAttention.kernel_initializer": (),
    "TransformerBlock.cross_encoding": OPTIONAL,
    "TransformerDecoder.cross_encoding": OPTIONAL,
    "YaRN.scaling_factor": ("None", "2.5"),
}
"""The values that are right after all, by argument, or by class and argument.
"""

KERAS_ARGUMENTS = {"name", "trainable", "dtype"}


def constructor_cases(name):
    """Bad values of every argument of a class, and an unknown argument."""
    cls, right = CLASSES[name]
    arguments = constructor_arguments(cls).keys() - KERAS_ARGUMENTS
    if cls is EncoderDecoder:
        arguments |= constructor_arguments(TransformerEncoder).keys()
    refused = encodings.ROWS[name].refused if name in encodings.ROWS else ()
    for argument in sorted(arguments):
        allowed = RIGHT.get(f"{name}.{argument}", RIGHT.get(argument, ()))
        if argument in refused:
            allowed = RIGHT.get(f"{name}.{argument}", OPTIONAL)
        for label, value in VALUES.items():
            if label not in allowed:
                yield Case(
                    name,
                    argument,
                    label,
                    functools.partial(cls, **{**right, argument: value}),
                )
    yield Case(name, "lenght", "1", functools.partial(cls, **right, lenght=1))
