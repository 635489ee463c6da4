"""Converts docstrings in the format of this library to Markdown."""

import inspect
import re
import textwrap

from keras_lengen.checks.constructors import constructor_arguments

LISTS = ("Args:", "Attributes:", "Call arguments:", "Raises:")
"""Docstring lines that begin a list of entries."""
LABEL = r"(?:[A-Z][\w-]+(?: [a-z]+)?|Differs from [\w' ]+):"
"""Labels that begin a paragraph: one or two words, or `Differs from ...`."""


def render_markdown(documented):
    """Returns the docstring of a class or a function as Markdown."""
    paragraphs = inspect.cleandoc(documented.__doc__).split("\n\n")
    return "\n\n".join(filter(None, map(_render_paragraph, paragraphs)))


def find_references(cls):
    """Lists the references in the docstring of a class.

    Returns:
        List of pairs of a text and a web address, which is `None` if there is
        none. Remarks in parentheses and text after the first address are left
        out.
    """
    found = []
    for line in re.findall(
        r"^\*\*Reference:\*\* (.*)", render_markdown(cls), re.M
    ):
        text, *addresses = re.split(r"\s*(https://\S+)", line)
        text = re.sub(r"\s*\([^)]*\)", "", text).removesuffix(".")
        found.append((text, addresses[0] if addresses else None))
    return found


def find_entry(cls, argument):
    """Returns what the docstring of a class says of an argument, or `""`."""
    entry = re.search(
        rf"^- `{argument}`: (.*)$", render_markdown(cls), re.MULTILINE
    )
    return entry[1] if entry else ""


def find_choices(cls, argument):
    """Lists the strings that an argument may be, according to its entry."""
    found = re.findall(r'`("\w+")`', find_entry(cls, argument))
    return list(dict.fromkeys(found))


def format_signature(documented, name):
    """Returns the signature of a constructor or a function.

    Arguments that a class passes on to its bases follow its own arguments.

    Args:
        documented: Class or function.
        name: str. Its name in the signature.
    """
    if inspect.isclass(documented):
        parameters = constructor_arguments(documented)
    else:
        parameters = dict(inspect.signature(documented).parameters)
        parameters.pop("self", None)
    stars = {inspect.Parameter.VAR_KEYWORD: "**"}
    arguments = [
        f"{stars.get(parameter.kind, '')}{name}"
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
    if inspect.isfunction(value):
        return value.__name__
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _render_paragraph(text):
    head, *rest = text.splitlines()
    if head == "Example:":
        # The code of the example is the next paragraph.
        return ""
    if head.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    if head in LISTS:
        entries = _split_entries(textwrap.dedent("\n".join(rest)), r"(?=\S)")
        return f"**{head}**\n\n" + "\n".join(map(_render_entry, entries))
    if head == "Returns:":
        return f"**{head}** {' '.join(' '.join(rest).split())}"
    if head.startswith("- "):
        return "\n".join(_split_entries(text, "(?=- )"))
    # A label is at the start of a paragraph, or of a line that follows the end
    # of a sentence or an address.
    paragraphs = re.split(rf"(?<=[./]|\d)\n(?={LABEL} )", text)
    return "\n\n".join(
        re.sub(rf"^({LABEL}) ", r"**\1** ", " ".join(lines.split()))
        for lines in paragraphs
    )


def _split_entries(text, beginning):
    """Splits text into entries that begin where a line matches `beginning`."""
    entries = re.split(rf"^{beginning}", text, flags=re.MULTILINE)
    return [" ".join(entry.split()) for entry in entries if entry.strip()]


def _render_entry(entry):
    return re.sub(r"^- ([\w*]+):", r"- `\1`:", f"- {entry}")
