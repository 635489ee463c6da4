"""Makes README's tables of samplers, encodings and tasks from the classes."""

from datasets.tasks import TASKS
from docs.examples import ENCODINGS, SAMPLERS
from keras_lengen.layers.encodings.base import Randomized
from trainers.records.markdown import table


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


def _describe(cls):
    line = cls.__doc__.partition("\n\n")[0]
    # An ellipsis is no full stop.
    return line if line.endswith("...") else line.removesuffix(".")


TABLES = {
    "samplers": make_samplers,
    "encodings": make_encodings,
    "tasks": make_tasks,
}
"""Functions that make a table, by the name in its marker."""
