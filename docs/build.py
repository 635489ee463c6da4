"""Rewrites every generated page, table and picture.

python -m docs.build
"""

import pathlib
import re

from benchmarks import result_tables
from docs import (
    build_reference,
    build_scaling,
    class_tables,
    explorer,
    figures,
    fused_table,
    measured_curves,
    overview_table,
    result_pictures,
)

ROOT = pathlib.Path(__file__).parent.parent
PAGES = (
    ROOT / "README.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "docs" / "guides" / "fused_attention.md",
    ROOT / "docs" / "reference" / "overview.md",
    ROOT / "docs" / "start" / "notebooks.md",
    ROOT / "docs" / "trainers" / "algorithmic.md",
    ROOT / "docs" / "trainers" / "answers.md",
    *(
        ROOT / "docs" / "results" / f"{name}.md"
        for name in (
            *("addition", "algorithmic", "answers", "demonstration"),
            *("images", "language", "long_multiplication", "methods"),
            *("multiplication", "paper_table", "performance", "pretrained"),
            "published_tasks",
        )
    ),
)
"""Pages with tables after markers like `<!-- results: train_step -->`."""

TABLES = {
    "results": {
        **result_tables.TABLES,
        "fused": fused_table.make_table,
        "fused_times": fused_table.make_times,
        "overview": overview_table.make_overview,
    },
    "classes": class_tables.TABLES,
}
MARKER = r"(<!-- (results|classes): (\w+) -->\n)"
TABLE = r"(?:\n?\|[^\n]*(?:\n\|[^\n]*)*\n)?"


def replace_tables(text):
    """Replaces the table after every marker."""
    return re.sub(
        MARKER + TABLE,
        lambda match: f"{match[1]}\n{TABLES[match[2]][match[3]]()}\n",
        text,
    )


def rebuild(text):
    """Replaces the tables and figures of a page."""
    return figures.replace_figures(replace_tables(text))


def main():
    """Writes all of them."""
    for page in PAGES:
        page.write_text(rebuild(page.read_text()))
    build_scaling.PAGE.write_text(build_scaling.make_page())
    panels = measured_curves.make_panels()
    explorer.CURVES.write_text(explorer.dump_panels(panels))
    result_pictures.main(panels)
    build_reference.main()


if __name__ == "__main__":
    main()
