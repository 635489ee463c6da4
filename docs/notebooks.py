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


def run(name, directory, **limits):
    """Runs a notebook from top to bottom.

    Args:
        name: str. Its name in `colab/`, without an ending.
        directory: Directory for the files that it writes.
        **limits: Arguments of `nbclient.NotebookClient`.

    Returns:
        The notebook with its outputs, without those for standard error.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell fails.
    """
    path = ROOT / "colab" / f"{name}.ipynb"
    notebook = jupytext.read(path)
    where = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(
        notebook,
        resources=where,
        coalesce_streams=True,
        record_timing=False,
        **limits,
    ).execute(env={**os.environ, "KERAS_LENGEN_RUNS": str(directory)})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [
                output
                for output in cell.outputs
                if output.get("name") != "stderr"
            ]
    return notebook


def main(names):
    """Writes notebooks with their outputs to `docs/notebooks`."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or sorted(p.stem for p in ROOT.glob("colab/*.ipynb")):
        with tempfile.TemporaryDirectory() as directory:
            notebook = run(name, directory, timeout=3600)
        path = FOLDER / f"{name}.ipynb"
        nbformat.write(notebook, path)
        print(f"wrote {path}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
