"""Writes the files of a report."""

import re
import tempfile

from trainers.errors import ConfigError
from trainers.records.files import replacing
from trainers.reports.blocks import Curves, Paragraph, Picture
from trainers.reports.cells import make_cells
from trainers.reports.chart import draw_panels
from trainers.reports.contents import make_blocks, make_csv
from trainers.reports.curves import make_panels
from trainers.reports.page import make_page
from trainers.reports.text import make_text


def write_report(directory, grid, runs, source, lead=()):
    """Writes the report of a grid.

    Args:
        directory: `pathlib.Path` to write to.
        grid: The `Grid`.
        runs: List of a `ReportedRun` for each of its runs.
        source: str. Which runs they are.
        lead: Blocks that stand before all others.

    Raises:
        ConfigError: If nothing can be written there.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Fails where files cannot be written.
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise ConfigError(
            f"cannot write to {directory}: {error.strerror}. Choose another "
            "--output."
        ) from None
    try:
        curves = _draw_curves(grid, runs)
    except ImportError:
        print("no curves: vl-convert-python is not installed (extra: plots)")
        curves = None
    blocks = [
        *lead,
        Paragraph(source),
        *make_blocks(grid, runs, curves),
    ]
    is_new = not (directory / "report.md").exists()
    files = {
        "report.md": make_text(grid.title, blocks).encode(),
        "report.csv": make_csv(grid, runs),
        "report.html": make_page(grid.title, blocks),
        **{
            picture.name: picture.content
            for picture in (curves.pictures if curves else ())
        },
    }
    for name, content in files.items():
        with replacing(directory / name) as file:
            file.write(content)
    finished = sum(run.finished for run in runs)
    print(f"{finished} of {len(runs)} runs have finished")
    which = "report" if is_new else "report, replaced"
    print(f"{which}: {directory / 'report.html'}")


def _draw_curves(grid, runs):
    """Returns the `Curves` of runs; `None`: none has finished."""
    panels = make_panels(grid, make_cells(grid, runs))
    pictures = []
    for problem, panel in panels.items():
        name = re.sub(r"\W+", "-", problem).strip("-")
        text = f"{panel.task}: {panel.measure} at each {panel.length_name}"
        pictures.append(Picture(f"{name}.png", text, draw_panels([panel])))
    return Curves([*panels.values()], pictures) if panels else None
