"""Imports go one way."""

import ast
import graphlib

import pytest

import datasets
from tests.checkout import ROOT

FILES = "datasets.files"
"""How any file is opened, which knows of no data."""

LAYERS = (
    ("errors",),
    ("devices",),
    ("engine",),
    ("options",),
    ("records",),
    ("experiment",),
    ("answers", "images", "populations", "text"),
    ("labelled",),
    ("analyses", "sweeps", "tpu"),
    ("reports",),
    ("choosing",),
)
"""Parts of `trainers/`, which import those above them in this list.

The first six are shared: none of them knows a feature's folder.
"""


def find_imports(path):
    """Names of the modules that a file, or those of a folder, import."""
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                yield node.module or "", file
                # A package may be imported with a name of it.
                for alias in node.names:
                    yield f"{node.module}.{alias.name}", file
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name, file


def assert_never_imports(path, forbidden):
    found = list(find_imports(path))
    assert found
    for module, file in found:
        if module == FILES or module.startswith(f"{FILES}."):
            continue
        for name in forbidden:
            assert module != name and not module.startswith(f"{name}."), file


@pytest.mark.parametrize(
    ("path", "forbidden"),
    [
        ("keras_lengen", ("trainers", "datasets", "tests", "benchmarks")),
        ("datasets", ("trainers", "keras_lengen", "tests")),
        ("trainers/engine", ("datasets",)),
        ("trainers/records", ("datasets",)),
        ("trainers", ("tests", "benchmarks", "docs")),
    ],
)
def test_imports_go_one_way(path, forbidden):
    assert_never_imports(ROOT / path, forbidden)


@pytest.mark.parametrize("package", ["keras_lengen", "datasets", "trainers"])
def test_no_files_import_each_other_in_a_circle(package):
    files = {}
    for path in (ROOT / package).rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        files[".".join(parts).removesuffix(".__init__")] = path
    graph = {
        name: {module for module, _ in find_imports(path)}
        & (files.keys() - {name})
        for name, path in files.items()
    }
    # Raises an error that lists a circle.
    graphlib.TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(
    "index", range(len(LAYERS)), ids=["-".join(layer) for layer in LAYERS]
)
def test_no_part_of_the_trainers_imports_one_below_it(index):
    trainers = ROOT / "trainers"
    programs = {path.stem for path in trainers.glob("*.py")} - {"__init__"}
    layers = {name for layer in LAYERS for name in layer}
    below = programs - layers | {n for row in LAYERS[index + 1 :] for n in row}
    for name in LAYERS[index]:
        path = trainers / name
        if not path.is_dir():
            path = path.with_suffix(".py")
        assert_never_imports(path, [f"trainers.{other}" for other in below])


def test_every_folder_of_the_trainers_has_its_layer():
    folders = {path.parent.name for path in ROOT.glob("trainers/*/__init__.py")}
    assert folders <= {name for layer in LAYERS for name in layer}


def test_names_of_hugging_face_are_explained():
    with pytest.raises(ImportError, match="load_dataset is of the package"):
        from datasets import load_dataset  # noqa: F401
    # As transformers.Trainer does, which imports the module.
    with pytest.raises(ImportError, match="run Python with -P"):
        isinstance([], datasets.Dataset)
    assert not hasattr(datasets, "anything_else")
