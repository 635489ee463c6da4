"""The first cell of a notebook installs the library, except in a checkout."""

import pytest

from tests.checkout import ROOT, SETUP, copy_checkout, make_repository
from tests.colab.test_notebooks import execute, read_notebook, read_text

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The address of a repository with the files of the checkout."""
    path = tmp_path_factory.mktemp("repository")
    copy_checkout(path)
    make_repository(path)
    # pip requires a host.
    return f"file://localhost{path}"


@pytest.mark.parametrize(
    ("name", "place"),
    [("demonstrations", "keras_lengen/colab"), ("randomized_rope", ".")],
)
def test_it_installs_the_library_elsewhere(
    name, place, repository, tmp_path, monkeypatch
):
    work, target = tmp_path / "work", tmp_path / "target"
    work.mkdir()
    # Nothing is downloaded, and this environment stays as it is.
    monkeypatch.setenv("PIP_TARGET", str(target))
    for flag in ("UPGRADE", "NO_DEPS", "NO_INDEX"):
        monkeypatch.setenv(f"PIP_{flag}", "1")
    # How pip spells this: no isolation, which would download setuptools.
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "0")
    notebook = read_notebook(ROOT / "colab" / f"{name}.py")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    first, second, third, last = notebook.cells = code[:4]
    first.source = first.source.replace(SETUP["metadata"]["url"], repository)
    # As in Colab, which asks for a restart if it replaced packages.
    second.source = f"os.chdir({str(work)!r})"
    third.source = first.source
    last.source = "print(os.getcwd())"
    execute(notebook, work)
    output = read_text(first.outputs + third.outputs)
    assert "fatal" not in output and "ERROR" not in output, output
    assert (target / "keras_lengen" / "__init__.py").exists(), output
    directory = (work / place).resolve()
    assert read_text(last.outputs) == f"{directory}\n"
    helpers = directory / "helpers" / "commands.py"
    assert helpers.exists() == (place != ".")
