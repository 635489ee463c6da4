"""The first cell finds the sources, wherever a notebook is opened."""

import os
import subprocess
import sys
import tarfile

import pytest

from tests.colab.test_notebooks import SCRIPTS, first_cell

CELL = first_cell(SCRIPTS[0])
INSTALL = """
import pathlib

def install_missing():
    print(pathlib.Path("name").read_text(), pathlib.Path.cwd())
"""

pytestmark = pytest.mark.process


def make_sources(path, name):
    """A directory like a checkout, which says its name when it is installed."""
    (path / "colab" / "helpers").mkdir(parents=True)
    (path / "colab" / "helpers" / "install.py").write_text(INSTALL)
    (path / "name").write_text(name)
    return path


def make_archive(path, sources, root="keras_lengen-0.1.0"):
    with tarfile.open(path, "w:gz") as archive:
        archive.add(sources, root)
    return path


def make_repository(sources):
    git = ["git", "-c", "user.name=some", "-c", "user.email=some@example.org"]
    for command in (
        ("init", "--quiet"),
        ("add", "."),
        ("commit", "--quiet", "-m", "Sources"),
    ):
        subprocess.run([*git, *command], cwd=sources, check=True)
    return sources


def run_cell(where, source=None, program=CELL):
    """Runs the cell in a directory; returns the finished process."""
    # Nothing is downloaded.
    variables = {**os.environ, "PYTHONPATH": "", "PIP_NO_INDEX": "1"}
    variables.pop("KERAS_LENGEN_SOURCE", None)
    if source is not None:
        variables["KERAS_LENGEN_SOURCE"] = str(source)
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=where,
        env=variables,
        capture_output=True,
        text=True,
    )


def find(where, source=None, program=CELL):
    """The name and the directory of the sources that the cell finds."""
    done = run_cell(where, source, program)
    assert done.returncode == 0, done.stderr
    return tuple(done.stdout.split())


@pytest.fixture
def work(tmp_path):
    path = tmp_path / "somewhere" / "work"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def other(tmp_path):
    return make_sources(tmp_path / "other", "other")


def test_a_checkout_comes_first(tmp_path, other):
    checkout = make_sources(tmp_path / "checkout", "checkout")
    make_archive(checkout / "colab" / "keras_lengen-0.1.0.tar.gz", other)
    make_archive(checkout / "keras_lengen-0.1.0.tar.gz", other)
    for where in (checkout, checkout / "colab"):
        assert find(where, other) == ("checkout", str(checkout))


@pytest.mark.parametrize("ending", ["", " (1)"])
def test_an_uploaded_archive_comes_second(ending, tmp_path, work, other):
    sources = make_sources(tmp_path / "sources", "archive")
    make_archive(work / f"keras_lengen-0.1.0{ending}.tar.gz", sources)
    expected = ("archive", str(work / "keras_lengen-0.1.0"))
    assert find(work, other) == expected
    # As after a restart of the runtime.
    assert find(work, other) == expected
    # As if the cell runs twice.
    assert find(work, program=f"{CELL}\n{CELL}") == expected * 2


def test_the_variable_may_be_a_checkout(work, other):
    assert find(work, other) == ("other", str(other))


def test_the_variable_may_be_an_archive(tmp_path, work, other):
    archive = make_archive(tmp_path / "some.tar.gz", other)
    expected = ("other", str(work / "keras_lengen-0.1.0"))
    assert find(work, archive) == expected


def test_the_variable_may_be_the_address_of_a_repository(work, other):
    address = f"file://{make_repository(other)}"
    expected = ("other", str(work / "keras_lengen-clone"))
    assert find(work, address) == expected
    assert find(work, address) == expected


def write_damaged_archive(work):
    (work / "keras_lengen-0.1.0.tar.gz").write_bytes(b"not an archive")


def write_other_directory(work):
    (work / "empty").mkdir()


@pytest.mark.parametrize(
    ("prepare", "source"),
    [
        (None, None),
        (None, ""),
        (None, "/nowhere/keras_lengen-0.1.0.tar.gz"),
        (None, "file:///nowhere/keras_lengen.git"),
        (write_damaged_archive, None),
        (write_other_directory, "empty"),
    ],
)
def test_what_to_do_if_there_are_no_sources(prepare, source, work):
    if prepare:
        prepare(work)
    done = run_cell(work, source)
    assert done.returncode == 1
    *_, last = done.stderr.splitlines()
    assert last.startswith("RuntimeError: keras_lengen is not here: ")
    assert "`python -m build`" in last
    assert "KERAS_LENGEN_SOURCE" in last
    assert "CalledProcessError" not in done.stderr
