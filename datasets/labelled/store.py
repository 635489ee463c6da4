"""Examples on disk, which are read from there in any order.

Memory is needed for the pieces and the classes only, whatever the size of the
data.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import pathlib
import shutil
import uuid

import numpy as np

from datasets.files import write_whole
from datasets.labelled.rows import LabelledError, reading
from datasets.labelled.tokens import TOKENS, Tokenizer
from datasets.labelled.writer import EXAMPLE, Writer

VERSION = 1
"""Version of the files. Those of others are written again."""


@dataclasses.dataclass(frozen=True, eq=False)
class Store:
    """Examples on disk.

    Attributes:
        path: `pathlib.Path` of their directory.
        kind: str, of `KINDS`.
        tokenizer: str. Kind of the `Tokenizer`.
        columns: Dict, the fields of the `Columns`.
        pieces: List of str. The numbered pieces of its tokens.
        classes: List of str. Its labels or tags.
        skipped: int. Number of bad lines.
        first_bad: str. The first of them.
        digest: str. A digest of all examples.
    """

    path: pathlib.Path
    kind: str
    tokenizer: str
    columns: dict
    pieces: list
    classes: list
    skipped: int
    first_bad: str
    digest: str

    @functools.cached_property
    def examples(self):
        """Array `(examples,)` of type `EXAMPLE`."""
        return _map(self.path / "examples.bin", EXAMPLE)

    @functools.cached_property
    def tokens(self):
        """Array of the numbers of the pieces of all inputs, uint32."""
        return _map(self.path / "tokens.bin", np.uint32)

    @functools.cached_property
    def targets(self):
        """Array of the numbers of pieces or classes of all targets, uint32."""
        return _map(self.path / "targets.bin", np.uint32)

    def input(self, index):
        """Returns the numbers of the pieces of an input."""
        found = self.examples[index]
        return self.tokens[found["start"] :][: found["tokens"]]

    def target(self, index):
        """Returns the numbers of the pieces or classes of a target."""
        found = self.examples[index]
        return self.targets[found["target_start"] :][: found["target_tokens"]]


def _map(path, dtype):
    with reading(path):
        return np.memmap(path, dtype, mode="r")


def open_store(
    source, *, directory, columns, kind, tokens, bad_lines, report=print
):
    """Opens the examples of a source, which are kept for the next time.

    Args:
        source: `Source`.
        directory: `pathlib.Path` of the directory to keep them in.
        columns: `Columns`, some of them without a name.
        kind: str, of `KINDS`, or `"auto"`.
        tokens: str. Kind of the `Tokenizer`, or `"auto"`: words where inputs
            are lists, and otherwise characters.
        bad_lines: `"error"`, or `"skip"` to leave them out.
        report: Function of a line of text, called with the progress.

    Returns:
        A `Store`.

    Raises:
        LabelledError: If the data are missing or wrong.
    """

    def find(kind, tokens):
        known = [*source.identity, *dataclasses.astuple(columns), bad_lines]
        if tokens not in ("auto", *TOKENS):
            tokens = Tokenizer(tokens).digest
        text = json.dumps([*known, kind, tokens, VERSION])
        return directory / hashlib.sha256(text.encode()).hexdigest()[:16]

    asked = find(kind, tokens) if source.identity else None
    if asked and asked.is_file():
        # What `auto` stood for.
        kind, tokens = json.loads(asked.read_text())
        asked = find(kind, tokens)
    if asked and asked.is_dir():
        return _read(asked)
    beside = directory / f"{uuid.uuid4().hex}.partial"
    try:
        beside.mkdir(parents=True)
        writer = Writer(source.name, columns, bad_lines, report)
        with contextlib.closing(source.rows()) as rows:
            digest = writer.write(rows, beside, kind, tokens)
        chosen = writer.kind, writer.tokenizer.kind
        path = find(*chosen) if asked else directory / digest
        try:
            beside.rename(path)
        except OSError:
            # Another process has written the same examples.
            if not path.is_dir():
                raise
        if asked and asked != path:
            with write_whole(asked) as file:
                file.write(json.dumps(chosen).encode())
    except OSError as error:
        raise LabelledError(
            f"cannot write to {directory}: {error.strerror}. Choose another "
            "--data_dir."
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return _read(path)


def _read(path):
    """Reads the `Store` of a directory."""
    try:
        content = json.loads((path / "about.json").read_text())
        return Store(path=path, **content)
    except (OSError, ValueError, TypeError):
        raise LabelledError(
            f"{path} is damaged: remove it, and it is written again."
        ) from None
