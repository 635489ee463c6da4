"""Makes the tables of samplers, encodings, tasks and notebooks."""

import configparser
import pathlib
import re
import sys

from datasets.tasks import TASKS
from datasets.text_tasks import TEXT_TASKS
from docs.examples import ATTENTIONS, ENCODINGS, SAMPLERS
from keras_lengen.layers.encodings.randomized import Randomized
from trainers.records.markdown import table
from trainers.sweeps.grids.chomsky import TASKS as CHOMSKY

ROOT = pathlib.Path(__file__).parent.parent
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")
REPOSITORY = SETUP["metadata"].get("url", "")
"""Address of the repository, a placeholder until there is one."""

STAGES = {
    "embeddings": "added to the embeddings",
    "rotation": "rotations of queries and keys",
    "bias": "biases of the attention scores",
    None: "no encoding",
}
"""Family of the encodings of each stage."""


def make_families():
    """The names of all encodings, samplers and attentions, by family."""
    names: dict = {family: [] for family in STAGES.values()}
    forms, axial = [], []
    for name, cls in ENCODINGS.items():
        if issubclass(cls, Randomized):
            forms.append(name)
        elif name == "AxialEncoding":
            # It acts at the stage of its two encodings.
            axial.append(name)
        else:
            names[STAGES[cls.stage]].append(name)
    names["two encodings, for rows and columns"] = axial
    names["encodings with randomized positions"] = forms
    names["position samplers"] = list(SAMPLERS)
    names["attention layers"] = list(ATTENTIONS)
    rows = [
        (family, ", ".join(f"`{name}`" for name in members))
        for family, members in names.items()
    ]
    return table(("family", "classes"), rows)


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
    """The names of the tasks of every level, by benchmark."""
    levels = {}
    for name, task in TASKS.items():
        benchmarks = levels.setdefault(task.level, ([], []))
        benchmarks[name not in CHOMSKY].append(f"`{name}`")
    rows = [
        (
            # The usual spelling of the levels.
            level.replace("_", " ").replace("context ", "context-"),
            *(", ".join(names) for names in benchmarks),
        )
        for level, benchmarks in levels.items()
    ]
    header = ("level", "Chomsky hierarchy benchmark", "newer benchmarks")
    return table(header, rows)


def make_text_tasks():
    """The tasks in words: the first line of each file, and its tasks."""
    files = {}
    for name, cls in TEXT_TASKS.items():
        line = _describe(sys.modules[cls.__module__])
        scratchpad = "yes" if cls.step_words else ""
        files.setdefault((line, scratchpad), []).append(f"`{name}`")
    rows = [
        (line, ", ".join(names), scratchpad)
        for (line, scratchpad), names in files.items()
    ]
    return table(("problems", "tasks", "`--scratchpad`"), rows)


def make_notebooks():
    """Titles of notebooks, with links to their pages, files and into Colab."""
    place, rows = _find_place_on_github(), []
    for path in sorted((ROOT / "colab").glob("*.ipynb")):
        script = path.with_suffix(".py").read_text()
        title = re.search(r"^# # (.*)$", script, re.M)[1]
        link = f"[{path.stem}](../../colab/{path.name})"
        page = f"[{title}](../notebooks/{path.stem}.md)"
        rows.append((page, link, _badge(place, path)))
    # Without a place there, there is nothing that Colab could open.
    columns = 3 if place else 2
    header = ("content", "notebook", "")
    return table(header[:columns], [row[:columns] for row in rows])


def _find_place_on_github():
    """Returns owner and name of the repository; empty if it is elsewhere."""
    found = re.fullmatch(
        r"https://github\.com/([^/]+/[^/]+?)(\.git)?/?", REPOSITORY
    )
    return found[1] if found else ""


def _badge(place, path):
    colab = "https://colab.research.google.com"
    # The first cell of a notebook installs the same branch.
    return (
        f"[![Open in Colab]({colab}/assets/colab-badge.svg)]"
        f"({colab}/github/{place}/blob/main/colab/{path.name})"
    )


def _describe(documented):
    line = documented.__doc__.partition("\n\n")[0]
    # An ellipsis is no full stop.
    return line if line.endswith("...") else line.removesuffix(".")


TABLES = {
    "families": make_families,
    "samplers": make_samplers,
    "encodings": make_encodings,
    "tasks": make_tasks,
    "text_tasks": make_text_tasks,
    "notebooks": make_notebooks,
}
"""Functions that make a table, by the name in its marker."""
