import re

import pytest

from docs import docstrings
from docs.examples import CLASSES, MODELS
from keras_lengen.checks.arguments import (
    Boolean,
    Choice,
    Integer,
    Number,
    Optional,
    Tuple,
)
from keras_lengen.layers import MultiHeadAttention

OF_PAPERS = {
    name: cls for name, cls in CLASSES.items() if cls is not MultiHeadAttention
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


def test_markdown_and_references():
    assert docstrings.render_markdown(Documented) == MARKDOWN
    assert docstrings.find_references(Documented) == [
        ("Some et al., 2020, section 1", "https://example.org/1")
    ]


@pytest.mark.parametrize("name", OF_PAPERS)
def test_the_source_and_every_argument_are_described(name):
    """By its class, or by its bases and its fixed sampler."""
    cls = OF_PAPERS[name]
    assert docstrings.find_references(cls)
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


KINDS = {Integer: "int", Number: "float", Boolean: "bool", Tuple: "tuple of "}
"""How the entry of an argument begins, by its declaration."""

BOUNDS = {
    "least": "(?:from|at least)",
    "most": "(?:to|at most)",
    "above": "above",
    "below": "below",
}
"""Words before a bound."""


def read_bounds(entry):
    """Bounds by name that the first sentence of an entry states."""
    sentence, *_ = entry.split(". ")
    # Bounds may be written like `2 ** 24`.
    sentence = re.sub(
        r"`([-\d *]+)`", lambda match: str(eval(match[1])), sentence
    )
    return {
        name: float(match[1])
        for name, words in BOUNDS.items()
        if (match := re.search(rf"\b{words} (-?\d[\d.e-]*)\b", sentence))
    }


@pytest.mark.parametrize("name", {**CLASSES, **MODELS})
def test_entries_say_what_is_declared(name):
    cls = {**CLASSES, **MODELS}[name]
    for argument, declaration in cls.arguments().items():
        entry = docstrings.find_entry(cls, argument)
        if not entry:
            # Another class describes it.
            continue
        said = f"{argument}: {entry}"
        assert ("`None`" in entry) == declaration.admits(None), said
        if isinstance(declaration, Optional):
            declaration = declaration.inner
        if isinstance(declaration, Choice):
            for choice in declaration.choices:
                text = f'"{choice}"' if isinstance(choice, str) else choice
                assert f"`{text}`" in entry, said
            choices = docstrings.find_choices(cls, argument)
            assert len(choices) == sum(
                isinstance(choice, str) for choice in declaration.choices
            ), said
        for kind, words in KINDS.items():
            if isinstance(declaration, kind):
                assert entry.lower().startswith(words), said
        if isinstance(declaration, Tuple):
            declaration = declaration.inner
        declared = {
            bound: getattr(declaration, bound)
            for bound in BOUNDS
            if getattr(declaration, bound, None) is not None
        }
        assert read_bounds(entry) == declared, said
