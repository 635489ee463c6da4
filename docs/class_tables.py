"""Makes README's tables of samplers, encodings, tasks and notebooks."""

import configparser
import pathlib
import re

from datasets.tasks import TASKS
from docs.examples import ENCODINGS, SAMPLERS
from keras_lengen.layers.encodings.base import Randomized
from trainers.records.markdown import table

ROOT = pathlib.Path(__file__).parent.parent
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")
REPOSITORY = SETUP["metadata"].get("url", "")
"""Address of the repository, which setup.cfg gives once there is one."""


def make_samplers():
    """Every sampler with the first line of its docstring."""
    rows = [(f"`{name}`", _describe(cls)) for name, cls in SAMPLERS.items()]
    return table(("sampler", "what it does"), rows)


def make_encodings():
    """Every encoding with the first line of its docstring.

    A randomized form has no row of its own: it stands beside its encoding.
    """
    randomized = {
        base: f"`{name}`"
        for name, cls in ENCODINGS.items()
        if issubclass(cls, Randomized)
        for base in cls.__bases__
    }
    rows = [
        (f"`{name}`", _describe(cls), randomized.get(cls, ""))
        for name, cls in ENCODINGS.items()
        if not issubclass(cls, Randomized)
    ]
    return table(("encoding", "what it does", "randomized form"), rows)


def make_tasks():
    """The names of the tasks of every level."""
    levels = {}
    for name, task in TASKS.items():
        levels.setdefault(task.level, []).append(f"`{name}`")
    rows = [
        (
            # As the hierarchy's levels are usually spelled.
            level.replace("_", " ").replace("context ", "context-"),
            ", ".join(names),
        )
        for level, names in levels.items()
    ]
    return table(("level", "tasks"), rows)


def make_notebooks():
    """The title of every notebook, with links to its file and into Colab."""
    rows = []
    for path in sorted((ROOT / "colab").glob("*.ipynb")):
        script = path.with_suffix(".py").read_text()
        title = re.search(r"^# # (.*)$", script, re.M)[1]
        rows.append((title, f"[{path.stem}](colab/{path.name})", _badge(path)))
    # Without an address, there is nothing that Colab could open.
    columns = 3 if REPOSITORY else 2
    header = ("what you do", "notebook", "")
    return table(header[:columns], [row[:columns] for row in rows])


def _badge(path):
    colab = "https://colab.research.google.com"
    place = REPOSITORY.removeprefix("https://github.com/")
    return (
        f"[![Open in Colab]({colab}/assets/colab-badge.svg)]"
        f"({colab}/github/{place}/blob/main/colab/{path.name})"
    )


def _describe(cls):
    line = cls.__doc__.partition("\n\n")[0]
    # An ellipsis is no full stop.
    return line if line.endswith("...") else line.removesuffix(".")


TABLES = {
    "samplers": make_samplers,
    "encodings": make_encodings,
    "tasks": make_tasks,
    "notebooks": make_notebooks,
}
"""Functions that make a table, by the name in its marker."""
