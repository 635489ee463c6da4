"""Configuration of the site, which Sphinx builds from the pages of docs/.

python -m sphinx -W -b html docs docs/_build/html
"""

import os
import pathlib
import re

from sphinx import addnodes

from docs import class_links, explorer

project = "keras_lengen"
_package = pathlib.Path(__file__).parents[1] / project / "__init__.py"
# Read and not imported: the build does not need Keras.
release = re.search(r'__version__ = "(.*)"', _package.read_text())[1]
version = release
html_title = f"{project} {release}"
html_theme = "furo"
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]
extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build"]

myst_heading_anchors = 4
"""Deepest headings that links may name, as in `page.md#heading`."""

copybutton_exclude = ".linenos, .gp, .go"
"""Parts of a code block that are not copied: prompts and outputs."""


def setup(app):
    """Registers what pages need; `offer_files` precedes Sphinx's collectors."""
    app.add_directive("explorer", explorer.Explorer)
    app.connect("doctree-resolved", class_links.link_classes)
    app.connect("doctree-read", offer_files, priority=100)


def offer_files(app, doctree):
    """Turns links to Markdown files outside of docs/ into downloads.

    MyST takes these files for pages, which Sphinx does not have.
    """
    for link in list(doctree.findall(addnodes.pending_xref)):
        target = link["reftarget"]
        # The names of pages are relative.
        if link.get("refdomain") == "doc" and os.path.isabs(target):
            path = os.path.relpath(f"{target}.md", app.srcdir)
            attributes = {
                **link.attributes,
                "refdomain": None,
                "reftarget": f"/{path}",
            }
            link.replace_self(
                addnodes.download_reference(
                    "", "", *link.children, **attributes
                )
            )
