"""The pass over rows that writes the files of a store."""

import collections
import dataclasses
import hashlib
import itertools
import json
import time

import numpy as np

from datasets.labelled.columns import MOST_TOKENS
from datasets.labelled.rows import LabelledError
from datasets.labelled.tokens import Tokenizer

KINDS = ("label", "answer", "tags")
"""What a target is: a class of the input, a text to write, or a class of each
token of the input."""

EXAMPLE = np.dtype(
    [
        ("start", "<i8"),
        ("tokens", "<i4"),
        ("target_start", "<i8"),
        ("target_tokens", "<i4"),
        ("length", "<i4"),
        ("hash", "<u8"),
    ]
)
"""An example: where its tokens and those of its target begin, and how many
there are; its length; and a hash of its input."""

PEEKED = 1000
"""Number of examples from which the kinds of tokens and targets are guessed."""

MOST_CLASSES = 10_000
"""Largest number of labels, or of tags."""

MOST_GUESSED = 100
"""Largest number of labels where the kind of the targets is guessed."""

_BUFFER = 4096
"""Number of examples that are written at once."""

_REPORT = 5.0
"""Seconds between reports of progress."""


class Writer:
    """Writes the examples of a source.

    Args:
        name: str. Name of the source, for messages.
        columns: `Columns`, some of them without a name.
        bad_lines: `"error"` or `"skip"`.
        report: Function of a line of text.
    """

    def __init__(self, name, columns, bad_lines, report):
        self.name = name
        self.columns = columns
        self.bad_lines = bad_lines
        self.report = report
        self.skipped, self.first_bad = 0, ""
        self.kind = ""
        self.tokenizer = None
        self.classes = {}

    def write(self, rows, directory, kind, tokens):
        """Writes all examples into a directory.

        Args:
            rows: Iterator over pairs of a place and a row, as of a `Source`.
            directory: `pathlib.Path` of an empty directory.
            kind: str, of `KINDS`, or `"auto"`.
            tokens: str. Kind of the `Tokenizer`, or `"auto"`.

        Returns:
            A digest of all examples, 16 hexadecimal digits.

        Raises:
            LabelledError: If a row is wrong, or there is none.
        """
        texts = self._read_texts(rows)
        peeked = list(itertools.islice(texts, PEEKED))
        if not peeked:
            raise LabelledError(self._describe_nothing())
        if tokens == "auto":
            are_lists = all(isinstance(text, list) for _, text, *_ in peeked)
            tokens = "words" if are_lists else "characters"
        self.tokenizer = Tokenizer(tokens)
        self.kind = kind if kind != "auto" else guess_kind(peeked)
        examples = self._tokenize(itertools.chain(peeked, texts))
        digest = hashlib.sha256()
        names = ("tokens", "targets", "examples")
        ends, written, told = np.zeros(2, np.int64), 0, time.monotonic()
        for name in names:
            (directory / f"{name}.bin").touch()
        while part := list(itertools.islice(examples, _BUFFER)):
            inputs, targets, lengths, hashes = zip(*part, strict=True)
            table = np.empty(len(part), EXAMPLE)
            for number, texts_of in enumerate((inputs, targets)):
                role = ("", "target_")[number]
                sizes = np.array([len(text) for text in texts_of])
                table[f"{role}tokens"] = sizes
                table[f"{role}start"] = ends[number] + np.cumsum(sizes) - sizes
                ends[number] += sizes.sum()
            table["length"], table["hash"] = lengths, hashes
            contents = np.concatenate(inputs), np.concatenate(targets), table
            for name, content in zip(names, contents, strict=True):
                with (directory / f"{name}.bin").open("ab") as file:
                    file.write(content.tobytes())
                digest.update(content.tobytes())
            written += len(part)
            if time.monotonic() - told > _REPORT:
                told = time.monotonic()
                self.report(f"{self.name}: {written:,} examples read.")
        if not written:
            raise LabelledError(self._describe_nothing())
        is_guess = kind == "auto" and self.kind == "label"
        if is_guess and len(self.classes) > MOST_GUESSED:
            raise LabelledError(
                f"{self.name} has {len(self.classes):,} different "
                f"{self.columns.target!r}, but few in the first {PEEKED:,} "
                "examples: give --kind=label or --kind=answer."
            )
        about = self._describe()
        digest.update(json.dumps(about, sort_keys=True).encode())
        found = digest.hexdigest()[:16]
        text = json.dumps({**about, "digest": found})
        (directory / "about.json").write_text(text)
        return found

    def _describe(self):
        return {
            "kind": self.kind,
            "tokenizer": self.tokenizer.kind,
            "columns": dataclasses.asdict(self.columns),
            "pieces": self.tokenizer.pieces,
            "classes": [*self.classes],
            "skipped": self.skipped,
            "first_bad": self.first_bad,
        }

    def _describe_nothing(self):
        if self.first_bad:
            return (
                f"{self.name} has no example: all {self.skipped:,} lines are "
                f"bad. The first is {self.first_bad}."
            )
        return f"{self.name} has no example: it is empty."

    def _refuse(self, place, error):
        """Raises the error of a bad line, or counts it."""
        if self.bad_lines == "error":
            raise LabelledError(
                f"{self.name}, {place}: {error}. Repair it, or leave such "
                "lines out by --bad_lines=skip."
            )
        if not self.skipped:
            self.first_bad = f"{place}: {error}"
        self.skipped += 1

    def _read_texts(self, rows):
        """Yields places, inputs, targets and lengths, without bad lines."""
        is_first = True
        for place, row in rows:
            if isinstance(row, LabelledError):
                self._refuse(place, row)
                continue
            if is_first:
                try:
                    self.columns = self.columns.find([*row])
                except LabelledError as error:
                    raise LabelledError(f"{self.name}: {error}") from None
                is_first = False
            try:
                found = self.columns.read(row)
            except LabelledError as error:
                self._refuse(place, error)
            else:
                yield place, *found

    def _tokenize(self, texts):
        """Yields tokens, targets, lengths and hashes, without bad lines."""
        for place, text, target, length in texts:
            try:
                yield self._tokenize_example(text, target, length)
            except LabelledError as error:
                self._refuse(place, error)

    def _tokenize_example(self, text, target, length):
        if self.kind == "tags":
            text = split_tagged(text, self.tokenizer)
        tokens = self._split(text, self.columns.input)
        if self.kind == "answer":
            targets = self._split(target, self.columns.target)
        else:
            targets = self._number_classes(target, len(tokens))
        if length is None:
            length = len(tokens)
        elif not isinstance(length, int):
            length = len(self._split(length, self.columns.length))
        content = "\0".join(text) if isinstance(text, list) else text
        found = hashlib.blake2b(content.encode(), digest_size=8).digest()
        return tokens, targets, length, int.from_bytes(found, "little")

    def _split(self, text, column):
        if isinstance(text, list) and self.tokenizer.kind != "words":
            raise LabelledError(
                f"its {column!r} is a list, whose items are tokens: give "
                "--tokens=words"
            )
        found = self.tokenizer.split(text)
        if not 1 <= len(found) <= MOST_TOKENS:
            raise LabelledError(
                f"its {column!r} has {len(found):,} tokens, instead of 1 to "
                f"{MOST_TOKENS:,}"
            )
        return found

    def _number_classes(self, target, tokens):
        """Returns the numbers of the labels or tags of an example, uint32."""
        column = self.columns.target
        if self.kind == "label":
            if isinstance(target, list):
                raise LabelledError(
                    f"its {column!r} is a list, instead of a label: give "
                    "--kind=tags or --kind=answer"
                )
            found = [target.strip()]
        else:
            found = target.split() if isinstance(target, str) else target
            if len(found) != tokens:
                raise LabelledError(
                    f"its {column!r} has {len(found):,} tags for {tokens:,} "
                    "tokens of the input"
                )
        for name in found:
            self.classes.setdefault(name, len(self.classes))
        if len(self.classes) > MOST_CLASSES:
            raise LabelledError(
                f"it is the first with more than {MOST_CLASSES:,} different "
                f"{column!r}: give --kind=answer if these are texts to write"
            )
        return np.array([self.classes[name] for name in found], np.uint32)


def split_tagged(text, tokenizer):
    """Splits an input whose tokens have tags; its words end at spaces only."""
    is_split = tokenizer.kind == "words" and isinstance(text, str)
    return text.split() if is_split else text


def guess_kind(peeked):
    """Guesses the kind of the targets of some examples.

    Args:
        peeked: List of tuples of a place, an input, a target and a length.

    Returns:
        `"tags"` where inputs and targets are lists, most of equal lengths;
        `"label"` where targets are texts of which there are few, each of them
        twice on average; and `"answer"` otherwise.
    """
    pairs = [(text, target) for _, text, target, _ in peeked]
    if all(isinstance(target, list) for _, target in pairs):
        are_lists = all(isinstance(text, list) for text, _ in pairs)
        matches = sum(len(text) == len(target) for text, target in pairs)
        is_tagged = are_lists and matches > len(pairs) / 2
        return "tags" if is_tagged else "answer"
    counts = collections.Counter(str(target) for _, target in pairs)
    is_few = len(counts) <= min(MOST_GUESSED, len(pairs) // 2)
    return "label" if is_few else "answer"
