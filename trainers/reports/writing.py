"""Writes the files of a report."""

import tempfile

from trainers.errors import ConfigError
from trainers.records.files import replacing
from trainers.reports.blocks import Paragraph
from trainers.reports.cells import make_cells
from trainers.reports.contents import make_blocks, make_csv
from trainers.reports.curves import draw_curves
from trainers.reports.page import make_page
from trainers.reports.text import make_text


def write_report(directory, grid, runs, source):
    """Writes the report of a grid.

    Args:
        directory: `pathlib.Path` to write to.
        grid: The `Grid`.
        runs: List of a `ReportedRun` for each of its runs.
        source: str. Which runs they are.

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
        pictures = draw_curves(grid, make_cells(grid, runs))
    except ImportError:
        print("no curves: matplotlib is not installed (extra: plots)")
        pictures = []
    blocks = [
        Paragraph(source),
        *make_blocks(grid, runs, pictures),
    ]
    is_new = not (directory / "report.md").exists()
    files = {
        "report.md": make_text(grid.title, blocks).encode(),
        "report.csv": make_csv(grid, runs),
        "report.html": make_page(grid.title, blocks),
        **{picture.name: picture.content for picture in pictures},
    }
    for name, content in files.items():
        with replacing(directory / name) as file:
            file.write(content)
    finished = sum(run.finished for run in runs)
    print(f"{finished} of {len(runs)} runs have finished")
    which = "report" if is_new else "report, replaced"
    print(f"{which}: {directory / 'report.html'}")
