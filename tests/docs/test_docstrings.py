import re

import pytest

from docs import docstrings
from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    TOKEN_SAMPLERS,
    AxialEncoding,
    GridPositions,
    MultiHeadAttention,
    PositionalEncoding,
    RandomizedALiBi,
)

EVERYTHING = {
    **ENCODINGS,
    **SAMPLERS,
    **TOKEN_SAMPLERS,
    "AxialEncoding": AxialEncoding,
    "GridPositions": GridPositions,
    **{
        name: cls
        for name, cls in ATTENTIONS.items()
        if cls is not MultiHeadAttention
    },
}


class Documented:
    """Does something with `x`.

    It is `x + 1` if this
    - that is no list - is 2.
    This sentence has one: not a label.

    - one `thing`,
      continued, and
    - another.

    Stage: `rotate`. Weights, in every layer: none.
    Positions: any.

    Args:
        x: A number: `"even"`: two times
            as large. `"odd"`: otherwise.
        **kwargs: Others.

    Raises:
        ValueError: If `x` is bad.

    Returns:
        float32 of shape `(T,)`: a
        vector.

    Differs from the paper: it does
    more.

    Example:

    >>> 1 + 1
    2

    Reference: Some et al., 2020, section 1 (with
    a remark). https://example.org/1
    Label-based form: Other, 2021.
    https://example.org/2
    """


MARKDOWN = """\
Does something with `x`.

It is `x + 1` if this - that is no list - is 2. This sentence has one: not a \
label.

- one `thing`, continued, and
- another.

**Stage:** `rotate`. Weights, in every layer: none.

**Positions:** any.

**Args:**

- `x`: A number: `"even"`: two times as large. `"odd"`: otherwise.
- `**kwargs`: Others.

**Raises:**

- `ValueError`: If `x` is bad.

**Returns:** float32 of shape `(T,)`: a vector.

**Differs from the paper:** it does more.

```pycon
>>> 1 + 1
2
```

**Reference:** Some et al., 2020, section 1 (with a remark). \
https://example.org/1

**Label-based form:** Other, 2021. https://example.org/2"""


def test_markdown_of_every_part():
    assert docstrings.render_markdown(Documented) == MARKDOWN


def test_references_are_texts_with_addresses():
    assert docstrings.find_references(Documented) == [
        ("Some et al., 2020, section 1", "https://example.org/1")
    ]


@pytest.mark.parametrize(
    ("argument", "expected"), [("x", ['"even"', '"odd"']), ("y", [])]
)
def test_choices_are_the_strings_of_an_entry(argument, expected):
    assert docstrings.find_choices(Documented, argument) == expected


@pytest.mark.parametrize(
    ("name", "cls", "expected"),
    [
        ("NoPE", PositionalEncoding, "NoPE(sampler=None)"),
        (
            "RandomizedALiBi",
            RandomizedALiBi,
            """\
RandomizedALiBi(
    distances="sampled",
    include_zero=None,
    max_position=2048,
    resample="batch",
    evaluation="random",
    ordered=True,
    seed=None,
    asymmetry=0.5,
)""",
        ),
        (
            "GridPositions",
            GridPositions,
            "GridPositions(width=None, row=None, column=None)",
        ),
    ],
)
def test_signature_names_all_arguments(name, cls, expected):
    assert docstrings.format_signature(cls, name) == expected


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_docstring_names_its_source(name):
    assert docstrings.find_references(EVERYTHING[name])


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_argument_is_described(name):
    """By its class, or by its bases and its fixed sampler."""
    cls = EVERYTHING[name]
    described = docstrings.render_markdown(cls)
    if hasattr(cls, "sampler_class"):
        described = "".join(
            docstrings.render_markdown(base)
            for base in (*cls.__mro__, cls.sampler_class)
            if base.__module__.startswith("keras_lengen.")
        )
    elif issubclass(cls, MultiHeadAttention):
        described += docstrings.render_markdown(cls.__base__)
    arguments = re.findall(
        r"[( ]([a-z]\w*)[=,)]", docstrings.format_signature(cls, "")
    )
    for argument in arguments:
        assert f"- `{argument}`: " in described
