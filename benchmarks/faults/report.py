"""The report of a drill, which also keeps its tally between invocations."""

import hashlib
import json
import os
import pathlib

from benchmarks.faults.run import DISTURBED_FLAGS
from trainers.records.results import versions
from trainers.records.workdir import write_json

ROOT = pathlib.Path(__file__).parents[2]
CODE = (
    "keras_lengen/**/*.py",
    "datasets/**/*.py",
    "trainers/**/*.py",
    "benchmarks/faults/*.py",
    "benchmarks/fault_drill.py",
)
"""Patterns of the files that decide on the outcome of a drill."""


class Report:
    """Reads and writes the report of a drill.

    Args:
        path: The file.
        command: Command of the drill, without flags that change nothing.
    """

    def __init__(self, path, command):
        self._path = pathlib.Path(path)
        self._head = {
            "command": command,
            "code": digest_code(ROOT),
            "versions": versions(),
        }

    def read(self):
        """Reads the record of an earlier invocation.

        Returns:
            The `record` of its `Tally`; `None` if there is none.

        Raises:
            SystemExit: If the file is of another drill.
        """
        if not self._path.exists():
            return None
        found = json.loads(self._path.read_text())
        for name, value in self._head.items():
            if found.get(name) != value:
                raise SystemExit(
                    f"error: {self._path} is of a drill with another {name} "
                    f"({found.get(name)}, now {value}): remove it to start "
                    "anew, or choose another --output."
                )
        return found

    def write(self, tally):
        """Writes the report, as a whole or not at all."""
        content = {
            **self._head,
            "cores": os.cpu_count(),
            "flags": DISTURBED_FLAGS,
            **tally.record,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self._path, content)


def digest_code(root):
    """Returns a digest of the drill and the code that it drills.

    Args:
        root: `pathlib.Path` of the checkout.
    """
    digest = hashlib.sha256()
    for pattern in CODE:
        for file in sorted(root.glob(pattern)):
            name = file.relative_to(root).as_posix()
            digest.update(f"{name} {file.stat().st_size}\n".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
