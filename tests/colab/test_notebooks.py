"""Notebooks are their scripts without outputs, and run from top to bottom."""

import re
import time

import pytest

from tests.checkout import ROOT, SETUP

SCRIPTS = sorted((ROOT / "colab").glob("*.py"))
ADDRESS = SETUP["metadata"]["url"]

each_notebook = pytest.mark.parametrize(
    "script", SCRIPTS, ids=[script.stem for script in SCRIPTS]
)


def read_notebook(script):
    jupytext = pytest.importorskip("jupytext")
    return jupytext.read(script.with_suffix(".ipynb"))


def execute(notebook, directory, **limits):
    """Runs a notebook from top to bottom; returns what its cells showed."""
    pytest.importorskip("nbclient")
    from docs.notebooks import run

    run(notebook, directory, **limits)
    return [
        output for cell in notebook.cells for output in cell.get("outputs", [])
    ]


def read_text(outputs):
    """Returns what cells printed."""
    return "".join(output.get("text", "") for output in outputs)


def test_every_notebook_has_a_script():
    notebooks = (ROOT / "colab").glob("*.ipynb")
    assert SCRIPTS
    assert {file.stem for file in notebooks} == {file.stem for file in SCRIPTS}


@each_notebook
def test_what_a_script_says(script, monkeypatch):
    text = script.read_text()
    # Its text is not about tests, and a full run asserts results.
    for part in text.split("\n# %% [markdown]\n")[1:]:
        assert "SMOKE" not in part.partition("\n# %%\n")[0]
    assert re.search(r"^if not SMOKE:\n(    .*\n)*?    +assert ", text, re.M)
    # The first cell installs the library from the repository.
    first = text.partition("\n# %%\n")[2].partition("\n# %%")[0]
    assert len(list(filter(str.strip, first.splitlines()))) <= 6
    assert f'    address = "{ADDRESS}"\n' in first
    # Without extras or upgrades: the packages of Colab stay as they are.
    assert re.search(
        r'^    # %pip install --quiet "?(\./)?keras_lengen[ \n]', first, re.M
    )
    # And clones it if the notebook runs trainers.
    runs_trainers = "from helpers.commands import" in text
    assert ("git clone" in first) == runs_trainers
    # In a checkout it does nothing.
    monkeypatch.chdir(script.parent)
    names = {}
    exec(first, names)
    assert "address" not in names


@pytest.mark.process
@each_notebook
def test_a_notebook_is_its_script_without_outputs(script):
    jupytext = pytest.importorskip("jupytext")
    cells = read_notebook(script).cells
    assert [(cell.cell_type, cell.source) for cell in cells] == [
        (cell.cell_type, cell.source) for cell in jupytext.read(script).cells
    ], "run jupytext --to notebook colab/*.py"
    page = (ROOT / "docs/notebooks" / f"{script.stem}.md").read_text()
    for cell in cells:
        assert cell.source in page, "run python -m docs.notebooks"
        assert not (cell.get("outputs") or cell.get("execution_count"))


def limit_total(seconds):
    """Seconds that a cell may take, so that all together take at most these."""
    end = time.monotonic() + seconds
    # nbclient understands numbers below 1 as no limit.
    return {"timeout_func": lambda cell: max(1, int(end - time.monotonic()))}


# The others run the same trainers and tools on other data. README promises ten
# minutes on two quiet cores for a whole notebook.
@pytest.mark.parametrize(
    ("name", "smoke"),
    [
        pytest.param(
            script.stem,
            smoke,
            marks=pytest.mark.process
            if smoke and script.stem in ("randomized_rope", "tpu")
            else pytest.mark.slow,
        )
        for script in SCRIPTS
        for smoke in (True, False)
    ],
)
def test_a_notebook_runs(name, smoke, monkeypatch, tmp_path):
    script = ROOT / "colab" / f"{name}.py"
    if "import keras_hub" in script.read_text():
        pytest.importorskip("keras_hub")
    monkeypatch.setenv("KERAS_LENGEN_SMOKE", str(int(smoke)))
    monkeypatch.setenv("KERAS_LENGEN_RUNS", str(tmp_path))
    # As in a kernel that no test has started: with what libraries print.
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    limits = {"timeout": 180} if smoke else limit_total(20 * 60)
    outputs = execute(read_notebook(script), script.parent, **limits)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    # Training shows its progress, but not the start-up notes of TensorFlow.
    assert "loss" in read_text(outputs)
    assert "oneDNN" not in read_text(outputs)
