"""The first cell of a notebook installs the library, except in a checkout."""

import configparser
import re
import subprocess

import pytest

from tests.checkout import ROOT, copy_checkout
from tests.colab.test_notebooks import each_notebook, read_text

SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")
ADDRESS = SETUP["metadata"]["url"]


def first_cell(script):
    """The source of the first cell with a program."""
    return script.read_text().partition("\n# %%\n")[2].partition("\n# %%")[0]


@each_notebook
def test_it_has_at_most_six_lines(script):
    lines = [line for line in first_cell(script).splitlines() if line.strip()]
    assert len(lines) <= 6


@each_notebook
def test_it_installs_the_library_from_the_repository(script):
    cell = first_cell(script)
    assert f'    address = "{ADDRESS}"\n' in cell
    (extras,) = re.findall(
        r'    # %pip install --quiet "(?:\./)?keras_lengen\[(.*)\].*"\n', cell
    )
    assert {*extras.split(",")} <= {*SETUP["options.extras_require"]}


@each_notebook
def test_it_clones_the_repository_if_the_notebook_runs_trainers(script):
    runs_trainers = "from helpers.commands import" in script.read_text()
    assert ("git clone" in first_cell(script)) == runs_trainers


@each_notebook
def test_it_does_nothing_in_a_checkout(script, monkeypatch):
    monkeypatch.chdir(script.parent)
    names = {}
    exec(first_cell(script), names)
    assert "address" not in names


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The address of a repository with the files of the checkout."""
    path = tmp_path_factory.mktemp("repository")
    copy_checkout(path)
    git = ["git", "-c", "user.name=some", "-c", "user.email=some@example.org"]
    for command in (
        ("init", "--quiet"),
        ("add", "."),
        ("commit", "--quiet", "-m", "Sources"),
    ):
        subprocess.run([*git, *command], cwd=path, check=True)
    # pip requires a host.
    return f"file://localhost{path}"


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "place"),
    [("demonstrations", "keras_lengen/colab"), ("randomized_rope", ".")],
)
def test_it_installs_the_library_elsewhere(
    name, place, repository, tmp_path, monkeypatch
):
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    target = tmp_path / "target"
    (tmp_path / "work").mkdir()
    # Nothing is downloaded, and this environment stays as it is.
    monkeypatch.setenv("PIP_TARGET", str(target))
    monkeypatch.setenv("PIP_UPGRADE", "1")
    monkeypatch.setenv("PIP_NO_DEPS", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    # How pip spells this: no isolation, which would download setuptools.
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "0")
    notebook = jupytext.read(ROOT / "colab" / f"{name}.ipynb")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    first, second, third, last = notebook.cells = code[:4]
    first.source = first.source.replace(ADDRESS, repository)
    # As in Colab, which asks for a restart if it replaced packages.
    second.source = f"os.chdir({str(tmp_path / 'work')!r})"
    third.source = first.source
    last.source = "print(os.getcwd())"
    where = {"metadata": {"path": str(tmp_path / "work")}}
    nbclient.NotebookClient(notebook, resources=where).execute()
    output = read_text(first.outputs) + read_text(third.outputs)
    assert "fatal" not in output and "ERROR" not in output, output
    assert (target / "keras_lengen" / "__init__.py").exists(), output
    directory = (tmp_path / "work" / place).resolve()
    assert read_text(last.outputs) == f"{directory}\n"
    runs_trainers = place != "."
    assert (directory / "helpers" / "commands.py").exists() == runs_trainers
