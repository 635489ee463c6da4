"""Writes the reference page and its pictures from the classes.

python -m docs.build_reference

The text comes from docstrings. The tables come from class attributes and from
the behaviour of an instance of each class.
"""

import pathlib
import re

import keras
import numpy as np
from keras import ops

from docs import docstrings, pictures
from docs.examples import (
    ANALYSIS,
    ATTENTIONS,
    CLASSES,
    ENCODINGS,
    EVALUATION,
    HEADS,
    METHODS,
    MODEL_WIDTH,
    MODELS,
    RETROFIT,
    SAMPLERS,
    WIDTH,
    WITH_MODELS,
    build,
    get_call,
    make,
)
from keras_lengen.layers.encodings.randomized import Randomized
from trainers.records.markdown import table

DOCS = pathlib.Path(__file__).parent
PAGE = DOCS / "reference" / "index.md"
PICTURES = DOCS / "images" / "reference"

LINKED = {*CLASSES, *MODELS, *WITH_MODELS, *RETROFIT, *ANALYSIS, *EVALUATION}

INTRODUCTION = f"""\
# Reference

<!-- Written by `python -m docs.build_reference`: edit docstrings instead. -->
<!-- fmt: off -->

Every encoding works with every sampler, except as the samplers' sections say.
`B` is the batch size, `T` the number of queries, `S` the number of keys, `H`
the number of heads, `D` the width of a head and `M` the width of the model.

## Encodings

- *Parameters*: number of trained parameters, with {HEADS} heads of width
  {WIDTH}, a model of width {MODEL_WIDTH} and the arguments given below each
  picture.
- *Past training*: whether positions larger than any position in training are
  defined. It does not follow that a model uses them well. Randomized forms
  train all positions below `max_position` and refuse longer sequences.
- *Past and future*: whether an earlier key and a later key at the same
  distance get different scores, without a causal mask.
- *Source*: where the formulas come from. The sections of the randomized forms
  name their own source.
"""

AFTER_ENCODINGS = """\
`AxialEncoding` combines two encodings and has the properties of both.

## Samplers

- *Draws*: whether two calls may return different positions by default, and the
  argument that changes this.
- *In evaluation*: default positions if `training` is false.
"""

AFTER_SAMPLERS = """\
## Attention

Classes for the argument `attention` of the models.
"""


def make_page():
    """Returns the text of the page."""
    parts = [
        INTRODUCTION,
        table(
            (
                "encoding",
                "stage",
                "parameters",
                "past training",
                "attention",
                "past and future",
                "randomized form",
                "source",
            ),
            [
                make_encoding_row(name, cls)
                for name, cls in ENCODINGS.items()
                if not issubclass(cls, Randomized) and name != "AxialEncoding"
            ],
        )
        + "\n",
        AFTER_ENCODINGS,
        table(
            ("sampler", "draws", "positions", "in evaluation", "source"),
            [make_sampler_row(name, cls) for name, cls in SAMPLERS.items()],
        )
        + "\n",
        AFTER_SAMPLERS,
        table(
            ("attention", "parameters", "source"),
            [make_attention_row(name, cls) for name, cls in ATTENTIONS.items()],
        )
        + "\n",
        *(
            text
            for title, classes in (
                ("Every encoding", ENCODINGS),
                ("Every sampler", SAMPLERS),
                ("Every attention", ATTENTIONS),
                ("Blocks and models", {**MODELS, **WITH_MODELS}),
                ("Retrofit existing models", RETROFIT),
                ("Evaluation", EVALUATION),
                ("Analysis", ANALYSIS),
            )
            for text in (
                f"## {title}\n",
                *(make_section(name, cls) for name, cls in classes.items()),
            )
        ),
    ]
    return "\n".join(parts)


def make_encoding_row(name, cls):
    """Returns the cells of an encoding's row in the table."""
    encoding = build(make(name))
    randomized = [
        _link(other)
        for other, form in ENCODINGS.items()
        if issubclass(form, Randomized) and cls in form.__bases__
    ]
    return (
        _link(name),
        encoding.stage or "none",
        _count_parameters(encoding),
        _describe_past_training(encoding),
        "causal" if cls.causal_only else "causal, bidirectional",
        _compare_past_and_future(encoding),
        ", ".join(randomized),
        _format_sources(cls),
    )


def make_sampler_row(name, cls):
    """Returns the cells of a sampler's row in the table."""
    sampler = make(name)
    (positions, *others) = _sample_positions(sampler, 8, training=True)
    dtype = keras.backend.standardize_dtype(positions.dtype)
    draws = "no"
    if sampler.is_random:
        shared = positions.ndim == 1
        draws = "one for the batch" if shared else "one for each example"
    return (
        _link(name),
        _append_choices(cls, draws, "resample"),
        f"{dtype} pairs" if others else dtype,
        _append_choices(cls, _describe_evaluation(sampler), "evaluation"),
        _format_sources(cls),
    )


def make_attention_row(name, cls):
    """Returns the cells of an attention layer's row in the table."""
    attention = make(name)
    attention.build(*[(None, 2, MODEL_WIDTH)] * 2)
    return _link(name), _count_parameters(attention), _format_sources(cls)


def make_section(name, documented):
    """Returns the section of a class or a function, with its picture."""
    text = describe(name, documented, "###")
    for method in METHODS:
        if method in vars(documented):
            function = getattr(documented, method)
            text += describe(f"{name}.{method}", function, "####")
    picture = pictures.find_picture(name) if name in CLASSES else None
    if picture is not None:
        caption = " ".join(picture.__doc__.split())
        file = f"../{get_picture_path(name).relative_to(DOCS).as_posix()}"
        text += [
            f"![{name}: {caption.partition('.')[0].lower()}]({file})",
            f"`{get_call(name)}`. {caption}",
        ]
    return "\n\n".join(text) + "\n"


def describe(name, documented, level):
    """Returns the heading, the signature and the docstring, a list of str."""
    signature = docstrings.format_signature(documented, name)
    return [
        f"{level} {name}",
        f"```python\n{signature}\n```",
        _link_names(docstrings.render_markdown(documented), but=name),
    ]


def get_picture_path(name):
    """Returns the path of the picture of a class."""
    return PICTURES / f"{name}.png"


def list_pictured():
    """Lists the names of the classes that have a picture."""
    return [name for name in CLASSES if pictures.find_picture(name) is not None]


def _count_parameters(layer):
    count = sum(int(np.prod(w.shape)) for w in layer.trainable_weights)
    if count == 0:
        return "none"
    if getattr(layer, "stage", None) == "embeddings":
        return f"{count:,}"
    shared = getattr(layer, "share_layers", False)
    return f"{count:,} {'for all layers' if shared else 'in every layer'}"


def _describe_past_training(encoding):
    if not encoding.defined_past_training:
        return "no: the table ends"
    if encoding.reads_inputs:
        return "yes"
    near, far = (
        _apply(encoding, np.array([1000, 1000 + distance]))
        for distance in (1000, 2000)
    )
    if encoding.stage is not None and np.array_equal(near, far):
        return "yes; far distances are not distinguished"
    return "yes"


def _compare_past_and_future(encoding):
    """Describes whether swapping the positions of two tokens changes scores."""
    if encoding.causal_only:
        return ""
    if encoding.reads_inputs:
        # The sign of an angle, which depends on tokens and not on positions.
        return "different"
    # Initial values may treat both sides alike where trained ones do not.
    generator = np.random.default_rng(1)
    for weight in encoding.weights:
        weight.assign(weight + 0.1 * generator.random(weight.shape))
    forwards, backwards = (
        _apply(encoding, np.array(positions)) for positions in ([0, 5], [5, 0])
    )
    if not np.allclose(forwards, backwards, atol=1e-4):
        return "different"
    return (
        "different with `asymmetry`"
        if hasattr(encoding, "asymmetry")
        else "equal"
    )


def _apply(encoding, positions):
    """Applies the encoding to two random tokens at these positions."""
    generator = np.random.default_rng(0)
    first, second = (
        ops.convert_to_tensor(
            generator.normal(size=(1, 2, HEADS, WIDTH)), "float32"
        )
        for _ in range(2)
    )
    if encoding.stage == "embeddings":
        flat = ops.reshape(first, (1, 2, MODEL_WIDTH))
        return np.asarray(encoding(flat, positions=positions))
    result = encoding(first, second, positions=positions)
    if encoding.stage == "bias":
        return np.asarray(result)[..., 0, 1]
    query, key = (np.asarray(part) for part in result)
    return (query[:, 0] * key[:, 1]).sum(-1)


def _sample_positions(sampler, tokens, *, training):
    inputs = ops.zeros((2, tokens), "int32")
    positions = sampler(inputs, training=training)
    return [np.asarray(axis) for axis in keras.tree.flatten(positions)]


def _describe_evaluation(sampler):
    """Describes the positions in evaluation, found by sampling some."""
    if sampler.reads_tokens:
        return "from the tokens"
    if len(_sample_positions(sampler, 8, training=False)) > 1:
        return "as in training"
    (short,), (again,), (long,) = (
        _sample_positions(sampler, tokens, training=False)
        for tokens in (8, 8, 256)
    )
    if not np.array_equal(short, again):
        return "drawn"
    if not np.array_equal(short.reshape(-1)[:8], np.arange(8)):
        return "other fixed numbers"
    if long.max() == 255:
        return "0, 1, 2, ..."
    return "0, 1, 2, ...; of longer sequences below `train_length`"


def _append_choices(cls, default, argument):
    choices = docstrings.find_choices(cls, argument)
    if not choices:
        return default
    return f"{default}; `{argument}`: " + ", ".join(
        f"`{choice}`" for choice in choices
    )


def _format_sources(cls):
    return "; ".join(
        f"[{text}]({address})" if address else _link_names(text)
        for text, address in docstrings.find_references(cls)
    )


def _link(name):
    return f"[`{name}`](#{name.lower()})"


def _link_names(text, but=None):
    """Turns class names in a text into links to their sections."""

    def link(match):
        return _link(match[1]) if match[1] in LINKED else match[0]

    # Not inside code blocks.
    parts = re.split(r"(```.*?```)", text, flags=re.DOTALL)
    parts[::2] = [
        re.sub(rf"`(?!{but}`)(\w+)`", link, part) for part in parts[::2]
    ]
    return "".join(parts)


def main():
    """Writes the page and the pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in list_pictured():
        print(get_picture_path(name).relative_to(DOCS.parent), flush=True)
        pictures.draw(name, get_picture_path(name))
    for path in PICTURES.glob("*.png"):
        if path.stem not in list_pictured():
            path.unlink()
    PAGE.write_text(make_page())


if __name__ == "__main__":
    main()
