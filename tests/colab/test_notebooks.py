"""Notebooks are their scripts without outputs, and run from top to bottom."""

import pytest

from tests.test_readme import ROOT

SCRIPTS = sorted(
    path for path in (ROOT / "colab").glob("*.py") if path.name != "commands.py"
)

each_notebook = pytest.mark.parametrize(
    "script", SCRIPTS, ids=[script.stem for script in SCRIPTS]
)


def contents(notebook):
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def test_every_notebook_has_a_script():
    notebooks = (ROOT / "colab").glob("*.ipynb")
    assert SCRIPTS
    assert {file.stem for file in notebooks} == {file.stem for file in SCRIPTS}


def first_cell(script):
    """The source of the first cell with a program."""
    return script.read_text().partition("\n# %%\n")[2].partition("\n# %%")[0]


def test_all_notebooks_install_in_the_same_way():
    (cell,) = {first_cell(script) for script in SCRIPTS}
    assert "pip" in cell


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


def execute(script, timeout):
    """Runs a notebook from top to bottom; returns what its cells showed."""
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    where = {"metadata": {"path": str(script.parent)}}
    client = nbclient.NotebookClient(notebook, timeout=timeout, resources=where)
    client.execute()
    return [
        output for cell in notebook.cells for output in cell.get("outputs", [])
    ]


def is_picture(output):
    return "image/png" in output.get("data", {})


@pytest.mark.process
@each_notebook
def test_a_notebook_runs(script, monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_LENGEN_SMOKE", "1")
    monkeypatch.setenv("KERAS_LENGEN_RUNS", str(tmp_path))
    assert any(map(is_picture, execute(script, timeout=300)))


@pytest.mark.slow
@each_notebook
def test_a_notebook_asserts_its_results(script, monkeypatch, tmp_path):
    monkeypatch.delenv("KERAS_LENGEN_SMOKE", raising=False)
    monkeypatch.setenv("KERAS_LENGEN_RUNS", str(tmp_path))
    assert any(map(is_picture, execute(script, timeout=1800)))
