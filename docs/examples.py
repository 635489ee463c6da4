"""The classes on the reference page, and an example instance of each."""

import ast
import doctest
import inspect

from keras_lengen import analysis, evaluation, layers, models, retrofit

HEADS, WIDTH = 8, 8
MODEL_WIDTH = HEADS * WIDTH

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
    "FeedForward": layers.FeedForward,
    **{
        name: getattr(models, name)
        for name in models.__all__
        if inspect.isclass(getattr(models, name)) and name != "Conversation"
    },
}
WITH_MODELS = {
    "Recipe": layers.Recipe,
    "LengthFactor": layers.LengthFactor,
    "Conversation": models.Conversation,
    "set_evaluation": models.set_evaluation,
}
"""What models are used with, by name."""
RETROFIT = {
    name: getattr(retrofit, name)
    for name in retrofit.__all__
    if name != "FAMILIES"
}
ANALYSIS = {name: getattr(analysis, name) for name in analysis.__all__}
EVALUATION = {name: getattr(evaluation, name) for name in evaluation.__all__}
METHODS = (
    *("generate", "stream", "start_conversation", "settle", "replace"),
    *("make_task", "refresh", "restore"),
)
"""Methods of models with a section of their own."""


def get_call(name):
    """Returns the Python expression that makes the example of a class.

    It is the first call of the class in the examples of its docstring. The
    pictures of attention need heads of the same size.
    """
    if name in ATTENTIONS:
        return f"{name}({HEADS}, {WIDTH})"
    examples = doctest.DocTestParser().get_examples(CLASSES[name].__doc__)
    code = "".join(example.source for example in examples)
    calls = [
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name
    ]
    return ast.unparse(min(calls, key=lambda call: call.lineno))


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
