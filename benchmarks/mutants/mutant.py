"""A mutant, and the choice of mutants in every area."""

import contextlib
import dataclasses
import hashlib
import itertools
import pathlib
import tomllib

from benchmarks.mutants.changes import list_changes

AREAS = pathlib.Path(__file__).with_name("areas.toml")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """An error in one place of the source.

    Attributes:
        area: Part of the project.
        name: Its name in reports: the place and the error.
        path: The file, relative to the root of the checkout.
        start: Index of the first character that is replaced.
        old: Text that is replaced.
        new: What stands there instead.
    """

    area: str
    name: str
    path: str
    start: int
    old: str
    new: str

    def lines(self, root):
        """Returns the numbers of the lines that it changes, a range."""
        before = pathlib.Path(root, self.path).read_text()[: self.start]
        first = before.count("\n") + 1
        return range(first, first + self.old.strip("\n").count("\n") + 1)

    def mutate(self, text):
        """Returns the text of the file with the error."""
        end = self.start + len(self.old)
        return text[: self.start] + self.new + text[end:]

    @contextlib.contextmanager
    def applied(self, root):
        """Writes it into the checkout `root`, and takes it back at the end."""
        path = pathlib.Path(root, self.path)
        text = path.read_text()
        path.write_text(self.mutate(text))
        try:
            yield
        finally:
            path.write_text(text)


def read_mutants(root, areas=()):
    """Chooses the mutants of some areas, of all areas by default.

    An area has mends of the history that are reverted, and a number of changes
    of its files, equally many of each kind. Names of changes decide which are
    chosen, so that most stay the same when the source changes.

    Args:
        root: Root of the checkout.
        areas: Names of areas.

    Returns:
        A list of `Mutant`.

    Raises:
        ValueError: If there is no such area, or if a mend is not in the source.
    """
    listed = tomllib.loads(AREAS.read_text())
    unknown = set(areas) - set(listed)
    if unknown:
        raise ValueError(
            f"no area {', '.join(sorted(unknown))}; the areas are "
            f"{', '.join(listed)}."
        )
    return [
        mutant
        for area in areas or listed
        for mutant in (
            *_choose_changes(root, area, **listed[area]),
            *(_read_mend(root, area, **m) for m in listed[area]["mends"]),
        )
    ]


def _choose_changes(root, area, paths, number, mends):
    """Chooses changes of the files of an area."""
    by_kind = {}
    for path in sorted(
        p for each in paths for p in pathlib.Path(root).glob(each)
    ):
        relative, text = str(path.relative_to(root)), path.read_text()
        names = {}
        for change in list_changes(text):
            old = text[change.start : change.end]
            name = f"{relative} {change.function}: {old!r} -> {change.new!r}"
            names[name] = count = names.get(name, 0) + 1
            if count > 1:
                name += f" ({count})"
            mutant = Mutant(area, name, relative, change.start, old, change.new)
            by_kind.setdefault(change.kind, []).append(mutant)
    ranked = [sorted(mutants, key=_digest) for mutants in by_kind.values()]
    rounds = itertools.chain(*itertools.zip_longest(*ranked))
    return list(itertools.islice(filter(None, rounds), number))


def _digest(mutant):
    return hashlib.sha256(mutant.name.encode()).digest()


def _read_mend(root, area, path, commit, wrong, old, new):
    """Makes the mutant that reverts a mend."""
    text = pathlib.Path(root, path).read_text()
    if text.count(old) != 1:
        raise ValueError(
            f"{path}: the text of the mend {commit} ({wrong}) must occur once; "
            f"it occurs {text.count(old)} times. Adapt it in {AREAS.name}."
        )
    return Mutant(area, f"{path}: {wrong}", path, text.index(old), old, new)
