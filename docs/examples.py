"""The classes on the reference page, and an example instance of each."""

import inspect

from keras_lengen import analysis, layers, models

HEADS, WIDTH = 8, 8
MODEL_WIDTH = HEADS * WIDTH

CALLS = {
    "LearnedEncoding": "LearnedEncoding(max_position=2048)",
    "NTKRoPE": "NTKRoPE(scaling_factor=8)",
    "YaRN": "YaRN(original_length=128, scaling_factor=8)",
    "XPos": "XPos(scale_base=64)",
    "HardALiBi": "HardALiBi(windowed_heads=3)",
    "T5Bias": "T5Bias(max_distance=48)",
    "SHAPE": "SHAPE(max_shift=500)",
    "CAPE": "CAPE(max_global_shift=20)",
    "WarpedRoPE": (
        "WarpedRoPE(train_length=128, head_fraction=0.4, tail_fraction=0.4)"
    ),
    "AxialEncoding": (
        "AxialEncoding(row=ALiBi(), column=ALiBi(), "
        "sampler=GridPositions(width=16))"
    ),
    "RandomizedPositions": "RandomizedPositions(max_position=512)",
    "ShiftedPositions": "ShiftedPositions(max_shift=200)",
    "InterpolatedPositions": "InterpolatedPositions(train_length=64)",
    "WarpedPositions": (
        "WarpedPositions(train_length=64, head_fraction=0.4, tail_fraction=0.4)"
    ),
    "AugmentedPositions": "AugmentedPositions(max_global_shift=20)",
    "GridPositions": "GridPositions(width=8)",
    "MultiHeadAttention": f"MultiHeadAttention({HEADS}, {WIDTH})",
    "AbacusPositions": "AbacusPositions(digits=range(10), max_shift=20)",
    "CoupledPositions": (
        "CoupledPositions(items=range(10), end_of_prompt=11, "
        "separators=[10], max_position=30)"
    ),
    "GeometricAttention": f"GeometricAttention({HEADS}, {WIDTH})",
    "ForgettingAttention": f"ForgettingAttention({HEADS}, {WIDTH})",
    "StickBreakingAttention": f"StickBreakingAttention({HEADS}, {WIDTH})",
}
"""Calls of the classes that need arguments or show more with some."""

ENCODINGS = {**layers.ENCODINGS, "AxialEncoding": layers.AxialEncoding}
SAMPLERS = {
    **layers.SAMPLERS,
    **layers.TOKEN_SAMPLERS,
    "GridPositions": layers.GridPositions,
}
ATTENTIONS = layers.ATTENTIONS
CLASSES = {**ENCODINGS, **SAMPLERS, **ATTENTIONS}
"""All classes with a section, by name."""

MODELS = {
    "TransformerBlock": layers.TransformerBlock,
    **{
        name: getattr(models, name)
        for name in models.__all__
        if inspect.isclass(getattr(models, name))
    },
}
ANALYSIS = {name: getattr(analysis, name) for name in analysis.__all__}
METHODS = ("generate", "stream", "settle")
"""Methods of models with a section of their own."""


def get_call(name):
    """Returns the Python expression that makes the example of a class."""
    return CALLS.get(name, f"{name}()")


def make(name):
    """Makes the example instance of a class."""
    return eval(get_call(name), dict(vars(layers)))


def build(encoding, *, tokens=2, heads=HEADS, width=WIDTH):
    """Builds an encoding as in a model of this size and returns it."""
    if encoding.stage == "embeddings":
        encoding.build((None, tokens, heads * width))
    else:
        encoding.build((None, tokens, heads, width))
    return encoding
