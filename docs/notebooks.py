"""Runs the notebooks of colab/, and makes pages of them with what they show.

    python -m docs.notebooks
    python -m docs.notebooks randomized_rope tpu

Each takes less than ten minutes on two CPU cores.
"""

import os
import pathlib
import re
import sys
import tempfile

import jupytext
import nbclient

ROOT = pathlib.Path(__file__).parents[1]
PAGES = ROOT / "docs" / "notebooks"
PICTURES = ROOT / "docs" / "images" / "notebooks"


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


def write_page(name, notebook, runs):
    """Writes a notebook with its outputs as a page of the site.

    Args:
        name: str. Its name in `colab/`.
        notebook: The notebook, which has run.
        runs: Directory of its runs; the page names the usual one.
    """
    # Only here, because tests run notebooks without it.
    from nbconvert import MarkdownExporter

    text, files = MarkdownExporter().from_notebook_node(
        notebook, {"unique_key": name, "output_files_dir": "."}
    )
    for path in PICTURES.glob(f"{name}_*"):
        path.unlink()
    for path, data in files["outputs"].items():
        picture = PICTURES / pathlib.Path(path).name
        picture.write_bytes(data)
        text = text.replace(
            f"![png]({path})",
            f"![What the cell shows](../images/notebooks/{picture.name})",
        )
    text = text.replace(str(runs), "runs/colab").replace(f"{ROOT}/", "")
    text = re.sub(r"[ \t]+$", "", text, flags=re.M)
    # Highlighters of Python do not know the commands of notebooks.
    text = re.sub(
        r"^```python(?=\n((?!```).*\n)*? *[!%])", "```", text, flags=re.M
    )
    origin = f"This page is the notebook [{name}](../../colab/{name}.ipynb)."
    page = PAGES / f"{name}.md"
    page.write_text(f"{text.strip()}\n\n{origin}\n")
    print(f"wrote {page}", flush=True)


def main(names):
    """Writes the pages of some notebooks, of all by default."""
    for folder in (PAGES, PICTURES):
        folder.mkdir(parents=True, exist_ok=True)
    colab = ROOT / "colab"
    for name in names or sorted(path.stem for path in colab.glob("*.ipynb")):
        notebook = jupytext.read(colab / f"{name}.ipynb")
        with tempfile.TemporaryDirectory() as runs:
            os.environ["KERAS_LENGEN_RUNS"] = runs
            run(notebook, colab, timeout=3600)
        write_page(name, notebook, runs)


if __name__ == "__main__":
    main(sys.argv[1:])
