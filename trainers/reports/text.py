"""A report as Markdown."""

from trainers.records.markdown import escape, table
from trainers.reports.blocks import Code, Curves, Heading, Paragraph, Table


def make_text(title, blocks):
    """Returns a report as Markdown, a str.

    Args:
        title: str.
        blocks: List of the blocks of `trainers.reports.blocks`.
    """
    return "\n\n".join([f"# {escape(title)}", *map(_format, blocks)]) + "\n"


def _format(block):
    match block:
        case Heading(text):
            return f"## {escape(text)}"
        case Paragraph(text):
            return escape(text)
        case Code(text):
            return f"```python\n{text}\n```"
        case Curves(_, pictures):
            links = (f"![{escape(p.text)}]({p.name})" for p in pictures)
            return "\n\n".join(links)
        case Table(head, rows):
            return table(
                tuple(map(escape, head)),
                [
                    (escape(name), *map(_format_entry, entries))
                    for name, *entries in rows
                ],
            )
    raise TypeError(f"no block: {block!r}")


def _format_entry(entry):
    text = escape(f"{entry.text}{entry.marks}")
    shown = [f"**{text}**" if entry.best else text] if text else []
    if entry.published:
        published = escape(f"{entry.published}{entry.published_marks}")
        bold = "**" if entry.published_best else ""
        shown.append(f"({bold}{published}{bold})")
    return " ".join(shown)
