"""Links from the names of classes in tables to their sections."""

import re

from docutils import nodes

REFERENCE = "reference/index"
"""The page that has a section for each class."""


def link_classes(app, doctree, docname):
    """Turns names of classes in the tables of a page into links.

    Args:
        app: The application of Sphinx.
        doctree: The document of a page.
        docname: str. Its name.
    """
    if docname == REFERENCE or not any(doctree.findall(nodes.table)):
        return
    anchors = {
        section[0].astext(): section["ids"][0]
        for section in app.env.get_doctree(REFERENCE).findall(nodes.section)
    }
    page = app.builder.get_relative_uri(docname, REFERENCE)
    for table in doctree.findall(nodes.table):
        for literal in list(table.findall(nodes.literal)):
            # A class may be called, as in `RoPE(rotary_fraction=0.25)`.
            name = re.match(r"\w*", literal.astext())[0]
            if name in anchors and not isinstance(
                literal.parent, nodes.reference
            ):
                uri = f"{page}#{anchors[name]}"
                link = nodes.reference("", "", refuri=uri, internal=True)
                literal.replace_self(link)
                link.append(literal)
