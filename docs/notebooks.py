"""Runs the notebooks of colab/, and keeps what they show for the site.

    python -m docs.notebooks
    python -m docs.notebooks randomized_rope tpu

Each takes less than ten minutes on two CPU cores.
"""

import os
import pathlib
import sys
import tempfile

import jupytext
import nbclient
import nbformat

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "notebooks"


def run(notebook, directory, **limits):
    """Runs a notebook from top to bottom.

    Args:
        notebook: The notebook; its cells get their outputs, without those
            for standard error.
        directory: Directory in which it runs.
        **limits: Arguments of `nbclient.NotebookClient`.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell fails.
    """
    nbclient.NotebookClient(
        notebook,
        resources={"metadata": {"path": str(directory)}},
        coalesce_streams=True,
        record_timing=False,
        **limits,
    ).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [
                output
                for output in cell.outputs
                if output.get("name") != "stderr"
            ]


def main(names):
    """Writes notebooks with their outputs to `docs/notebooks`."""
    FOLDER.mkdir(exist_ok=True)
    colab = ROOT / "colab"
    for name in names or sorted(path.stem for path in colab.glob("*.ipynb")):
        notebook = jupytext.read(colab / f"{name}.ipynb")
        with tempfile.TemporaryDirectory() as runs:
            os.environ["KERAS_LENGEN_RUNS"] = runs
            run(notebook, colab, timeout=3600)
        path = FOLDER / f"{name}.ipynb"
        nbformat.write(notebook, path)
        print(f"wrote {path}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
