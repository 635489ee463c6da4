"""Imports go one way."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FILES = "datasets.files"
"""How any file is opened, which knows of no data."""


def imports(path):
    """Names of the modules that the files of a folder import, and where."""
    for file in sorted((ROOT / path).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                yield node.module or "", file
                # A package may be imported with a name of it.
                for alias in node.names:
                    yield f"{node.module}.{alias.name}", file
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name, file


@pytest.mark.parametrize(
    ("path", "forbidden"),
    [
        ("keras_lengen", ("trainers", "datasets", "tests", "benchmarks")),
        ("datasets", ("trainers", "keras_lengen", "tests")),
        (
            "trainers/engine",
            (
                "datasets",
                "trainers.options",
                "trainers.records",
                "trainers.experiment",
            ),
        ),
        ("trainers/cluster", ("trainers.options", "trainers.experiment")),
        ("trainers/records", ("datasets", "trainers.experiment")),
        ("trainers/options", ("trainers.records", "trainers.experiment")),
        ("trainers", ("tests", "benchmarks", "docs")),
    ],
)
def test_imports_go_one_way(path, forbidden):
    found = list(imports(path))
    assert found
    for module, file in found:
        if module == FILES or module.startswith(f"{FILES}."):
            continue
        for name in forbidden:
            assert module != name and not module.startswith(f"{name}."), file
