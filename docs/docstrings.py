"""Markdown of docstrings written as this library writes them."""

import inspect
import re
import textwrap

from keras_lengen.arguments import constructor_arguments

LISTS = ("Args:", "Call arguments:", "Raises:")
"""Lines that begin a list of entries."""
LABEL = r"(?:[A-Z][\w-]+(?: [a-z]+)?|Differs from [\w' ]+):"
"""What may begin a paragraph: one word or two, or what the code differs from.
"""


def markdown(cls):
    """The docstring of a class, as Markdown."""
    blocks = inspect.cleandoc(cls.__doc__).split("\n\n")
    return "\n\n".join(filter(None, map(_render_paragraph, blocks)))


def references(cls):
    """What the docstring refers to: pairs of a text and an address.

    Remarks in parentheses and text after the first address are left out; the
    address is `None` where there is none.
    """
    found = []
    for line in re.findall(r"^\*\*Reference:\*\* (.*)", markdown(cls), re.M):
        text, *addresses = re.split(r"\s*(https://\S+)", line)
        text = re.sub(r"\s*\([^)]*\)", "", text).removesuffix(".")
        found.append((text, addresses[0] if addresses else None))
    return found


def choices(cls, argument):
    """The strings that an argument may be, as its entry names them."""
    entry = re.search(rf"^- `{argument}`: (.*)$", markdown(cls), re.MULTILINE)
    if entry is None:
        return []
    return list(dict.fromkeys(re.findall(r'`("\w+")`', entry[1])))


def signature(cls, name):
    """The call of the constructor, by this name, with all of its arguments.

    Those that a class hands on to its bases come behind its own.
    """
    parameters = constructor_arguments(cls)
    if hasattr(cls, "sampler_class"):
        # A preset brings its own.
        del parameters["sampler"]
    arguments = [
        name
        if parameter.default is parameter.empty
        else f"{name}={_format_literal(parameter.default)}"
        for name, parameter in parameters.items()
    ]
    call = f"{name}({', '.join(arguments)})"
    if len(call) <= 80:
        return call
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"{name}(\n{lines})"


def _format_literal(value):
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _render_paragraph(block):
    head, *rest = block.splitlines()
    if head == "Example:":
        # What makes it one follows, in a block of its own.
        return ""
    if head.startswith(">>>"):
        return f"```pycon\n{block}\n```"
    if head in LISTS:
        entries = _split_entries(textwrap.dedent("\n".join(rest)), r"(?=\S)")
        return f"**{head}**\n\n" + "\n".join(map(_render_entry, entries))
    if head == "Returns:":
        return f"**{head}** {' '.join(' '.join(rest).split())}"
    if head.startswith("- "):
        return "\n".join(_split_entries(block, "(?=- )"))
    # A label begins a paragraph, or a line after the end of a sentence or an
    # address.
    paragraphs = re.split(rf"(?<=[./]|\d)\n(?={LABEL} )", block)
    return "\n\n".join(
        re.sub(rf"^({LABEL}) ", r"**\1** ", " ".join(lines.split()))
        for lines in paragraphs
    )


def _split_entries(text, beginning):
    """Entries of a list, each begun by what matches, on a line of its own."""
    entries = re.split(rf"^{beginning}", text, flags=re.MULTILINE)
    return [" ".join(entry.split()) for entry in entries if entry.strip()]


def _render_entry(entry):
    return re.sub(r"^- ([\w*]+):", r"- `\1`:", f"- {entry}")
