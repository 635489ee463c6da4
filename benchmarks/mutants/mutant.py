"""A mutant, and the files that list them by area."""

import contextlib
import dataclasses
import pathlib
import tomllib

FOLDER = pathlib.Path(__file__).parent / "areas"


@dataclasses.dataclass(frozen=True)
class Mutant:
    """An error in one place of the source.

    Attributes:
        area: Part of the project, the name of the file that lists it.
        path: The file, relative to the root of the checkout.
        old: Text that occurs in it once.
        new: What stands there instead.
        wrong: What is wrong then, a few words.
        mend: Commit whose mend it reverts, "" for an error of its own.
    """

    area: str
    path: str
    old: str
    new: str
    wrong: str
    mend: str = ""

    @property
    def name(self):
        """Its name in reports."""
        return f"{self.path}: {self.wrong}"

    def lines(self, root):
        """Returns the numbers of the lines that it changes, a range."""
        text = self._read(root)
        first = text[: text.index(self.old)].count("\n") + 1
        kept = 0
        old, new = self.old.split("\n"), self.new.split("\n")
        while kept < min(len(old), len(new)) - 1 and old[kept] == new[kept]:
            kept += 1
        return range(first + kept, first + len(old))

    @contextlib.contextmanager
    def applied(self, root):
        """Writes it into the checkout `root`, and takes it back at the end."""
        text = self._read(root)
        mutated = text.replace(self.old, self.new)
        compile(mutated, self.path, "exec")
        path = pathlib.Path(root, self.path)
        path.write_text(mutated)
        try:
            yield
        finally:
            path.write_text(text)

    def _read(self, root):
        text = pathlib.Path(root, self.path).read_text()
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: the old text must occur once in the file; it "
                f"occurs {text.count(self.old)} times. Adapt the mutant in "
                f"benchmarks/mutants/areas/{self.area}.toml."
            )
        return text


def read_mutants(areas=()):
    """Reads the mutants of some areas, of all areas by default.

    Returns:
        A list of `Mutant`.

    Raises:
        ValueError: If there is no such area.
    """
    files = {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}
    unknown = set(areas) - set(files)
    if unknown:
        raise ValueError(
            f"no area {', '.join(sorted(unknown))}; the areas are "
            f"{', '.join(files)}."
        )
    return [
        Mutant(area=area, **fields)
        for area in areas or files
        for fields in tomllib.loads(files[area].read_text())["mutants"]
    ]
