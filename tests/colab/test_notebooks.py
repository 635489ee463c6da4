"""Notebooks are their scripts without outputs, and run from top to bottom."""

import re
import time

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


@each_notebook
def test_the_text_of_a_notebook_is_not_about_tests(script):
    _, *texts = script.read_text().split("\n# %% [markdown]\n")
    for text in texts:
        assert "SMOKE" not in text.partition("\n# %%\n")[0]


@each_notebook
def test_a_full_run_asserts_results(script):
    assert re.search(
        r"^if not SMOKE:\n(    .*\n)*?    +assert ", script.read_text(), re.M
    )


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


def execute(script, **limits):
    """Runs a notebook from top to bottom; returns what its cells showed."""
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    if "import keras_hub" in script.read_text():
        pytest.importorskip("keras_hub")
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    where = {"metadata": {"path": str(script.parent)}}
    client = nbclient.NotebookClient(notebook, resources=where, **limits)
    client.execute()
    return [
        output for cell in notebook.cells for output in cell.get("outputs", [])
    ]


def limit_total(seconds):
    """Seconds that a cell may take, so that all together take at most these."""
    end = time.monotonic() + seconds
    # nbclient understands numbers below 1 as no limit.
    return lambda cell: max(1, int(end - time.monotonic()))


def has_picture(outputs):
    return any("image/png" in output.get("data", {}) for output in outputs)


def read_text(outputs):
    """What cells and their commands printed, without the kernel's own notes."""
    return "".join(
        output["text"] for output in outputs if output.get("name") == "stdout"
    )


# The others run the same trainers and tools on other data.
SHORT = ("randomized_rope", "tpu")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            script,
            id=script.stem,
            marks=pytest.mark.process
            if script.stem in SHORT
            else pytest.mark.slow,
        )
        for script in SCRIPTS
    ],
)
def test_a_notebook_runs(script, monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_LENGEN_SMOKE", "1")
    monkeypatch.setenv("KERAS_LENGEN_RUNS", str(tmp_path))
    # As in a kernel that no test has started: with what libraries print.
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    outputs = execute(script, timeout=180)
    assert has_picture(outputs)
    # Training shows its progress, but not the start-up notes of TensorFlow.
    assert "loss" in read_text(outputs)
    assert "oneDNN" not in read_text(outputs)


# README promises ten minutes on two quiet cores.
@pytest.mark.slow
@each_notebook
def test_a_notebook_asserts_its_results(script, monkeypatch, tmp_path):
    monkeypatch.delenv("KERAS_LENGEN_SMOKE", raising=False)
    monkeypatch.setenv("KERAS_LENGEN_RUNS", str(tmp_path))
    outputs = execute(script, timeout_func=limit_total(20 * 60))
    assert has_picture(outputs)
