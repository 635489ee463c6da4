"""Notebooks are their scripts without outputs, and run from top to bottom."""

import pytest

from tests.test_readme import ROOT

SCRIPTS = sorted((ROOT / "colab").glob("*.py"))

each_notebook = pytest.mark.parametrize(
    "script", SCRIPTS, ids=[script.stem for script in SCRIPTS]
)


def contents(notebook):
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def test_every_notebook_has_a_script():
    notebooks = (ROOT / "colab").glob("*.ipynb")
    assert SCRIPTS
    assert {file.stem for file in notebooks} == {file.stem for file in SCRIPTS}


@pytest.mark.process
@each_notebook
def test_a_notebook_is_its_script_without_outputs(script):
    jupytext = pytest.importorskip("jupytext")
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    assert contents(notebook) == contents(jupytext.read(script)), (
        "run jupytext --to notebook colab/*.py"
    )
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.process
@each_notebook
def test_a_notebook_runs(script, monkeypatch):
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("KERAS_LENGEN_SMOKE", "1")
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    where = {"metadata": {"path": str(script.parent)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=where).execute()
    assert any(cell.get("outputs") for cell in notebook.cells)
