"""Rows of data sets: dicts from the names of columns to values.

A source of rows yields pairs of a place, such as `line 7`, and a row, or the
`LabelledError` that says what is wrong there.
"""

import contextlib
import csv
import dataclasses
import gzip
import importlib
import itertools
import json
import pathlib
import zlib
from collections.abc import Callable

from datasets.files import only_files

BAD_LINES = ("error", "skip")

LONGEST_LINE = 2**24
"""Largest number of bytes of a line, and of a field of a CSV file."""

LARGEST_ARRAY = 2**28
"""Largest number of bytes of a JSON file that is one array."""

TFDS = "tfds:"
"""Beginning of the name of a data set of TensorFlow Datasets."""


class LabelledError(Exception):
    """Labelled data are missing or wrong; the message says what to do."""


@dataclasses.dataclass(frozen=True)
class Source:
    """A source of rows.

    Attributes:
        name: str. A short name, for titles and messages.
        rows: Function without arguments that returns an iterator over pairs
            of a place and a row or a `LabelledError`.
        identity: Tuple of values that change when the rows change; `None`:
            nobody knows, and the rows must be read again.
    """

    name: str
    rows: Callable = dataclasses.field(compare=False)
    identity: tuple | None = None


def open_source(text):
    """Opens a file or a data set of TensorFlow Datasets.

    Args:
        text: str. Path of a file whose name ends in `.jsonl`, `.ndjson`,
            `.json`, `.csv` or `.tsv`, each also with `.gz`, or in `.parquet`;
            or `tfds:NAME` or `tfds:NAME:SPLIT`, by default the split `train`.

    Returns:
        A `Source`.

    Raises:
        LabelledError: If there is none, or of another kind.
    """
    if text.startswith(TFDS):
        name, _, split = text.removeprefix(TFDS).partition(":")
        return Source(name, lambda: _read_tfds(name, split or "train"))
    path = pathlib.Path(text).expanduser().absolute()
    with reading(path):
        with open(path, "rb", opener=only_files):
            pass
        stat = path.stat()
    kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    readers = {**_READERS, "parquet": _read_parquet}
    if kind not in readers:
        endings = ", ".join(f".{name}" for name in readers)
        raise LabelledError(
            f"{path} ends in none of {endings}: convert it to one of these "
            "formats, or write a function that yields dicts and name it as "
            "path/file.py:function."
        )
    return Source(
        path.name,
        lambda: readers[kind](path),
        (str(path), stat.st_size, stat.st_mtime_ns),
    )


def call_source(name, function):
    """Returns the `Source` of a function that returns an iterable of dicts."""

    def rows():
        number = 0
        try:
            for number, row in enumerate(function(), 1):
                yield f"example {number}", _check_row(row)
        except Exception as error:  # Whatever the code of a user raises.
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise LabelledError(
                f"{name} failed after {number:,} examples: {reason}."
            ) from error

    return Source(name, rows)


@contextlib.contextmanager
def reading(path):
    """Turns what reading a file raises into a `LabelledError`."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LabelledError(f"cannot read {path}: {reason}.") from None


def _read_lines(path):
    """Yields the number and the text of each line, or what is wrong with it."""
    opened = gzip.open if path.suffix == ".gz" else _open_plain
    with reading(path), opened(path) as file:
        for number in itertools.count(1):
            line = file.readline(LONGEST_LINE)
            if not line:
                return
            if number == 1:
                if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
                    raise LabelledError(
                        f"{path} is text in UTF-16: save it in UTF-8."
                    )
                line = line.removeprefix(b"\xef\xbb\xbf")
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST_LINE)
                yield (
                    number,
                    LabelledError(
                        f"the line has more than {LONGEST_LINE:,} bytes"
                    ),
                )
                continue
            # What is not UTF-8 is found where a column is read.
            yield number, line.decode(errors="surrogateescape")


def _open_plain(path):
    return open(path, "rb", opener=only_files)


def _read_json_lines(path):
    for number, line in _read_lines(path):
        if not isinstance(line, str):
            yield f"line {number}", line
        elif line.strip():
            if number == 1 and line.lstrip().startswith("["):
                yield from _read_json_array(path)
                return
            yield f"line {number}", _parse_json(line)


def _parse_json(text):
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "") or "nested too deeply"
        return LabelledError(f"it is no JSON object ({reason})")
    return _check_row(found)


def _check_row(found):
    if isinstance(found, dict):
        return found
    return LabelledError(
        f"it is of type {type(found).__name__}, instead of a dict of columns"
    )


def _read_json_array(path):
    with reading(path), _open_plain(path) as file:
        content = file.read(LARGEST_ARRAY + 1)
    if len(content) > LARGEST_ARRAY:
        raise LabelledError(
            f"{path} is one JSON array of more than {LARGEST_ARRAY:,} bytes, "
            "which is not read piece by piece: convert it to JSON Lines, as "
            "by jq -c '.[]'."
        )
    try:
        rows = json.loads(content.decode(errors="surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise LabelledError(f"{path} is no JSON array ({error}).") from None
    for number, row in enumerate(rows, 1):
        yield f"item {number}", _check_row(row)


def _read_csv(path, **dialect):
    problems = []

    def texts():
        for _, line in _read_lines(path):
            if isinstance(line, str):
                yield line
            else:
                problems.append(line)
                yield "\n"

    csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(texts(), strict=True, **dialect)
    header = None
    while True:
        first = reader.line_num + 1
        place = f"line {first}"
        try:
            fields = next(reader, None)
        except csv.Error as error:
            if "field larger" in str(error) or "end of data" in str(error):
                raise LabelledError(
                    f"{path}, {place}: the quotation mark that opens a field "
                    'is not closed: write a quotation mark in a field as "".'
                ) from None
            yield place, LabelledError(f"it is no line of CSV ({error})")
            continue
        if problems:
            yield place, problems.pop()
        elif fields is None:
            return
        elif not fields:
            continue
        elif header is None:
            header = _check_header(path, fields)
        elif len(fields) != len(header):
            yield (
                place,
                LabelledError(
                    f"it has {len(fields)} fields instead of {len(header)}"
                ),
            )
        else:
            row = dict(zip(header, fields, strict=True))
            # pandas writes an index and spreadsheets empty columns, unnamed.
            row.pop("", None)
            yield place, row


def _check_header(path, names):
    names = [name.strip() for name in names]
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        raise LabelledError(
            f"{path} names a column twice in its first line: {named}."
        )
    if len(named) < 2:
        raise LabelledError(
            f"{path} has a single column, {''.join(named)!r}, in its first "
            "line: separate columns by commas, or by tabs in a file whose name "
            "ends in .tsv."
        )
    return names


def _read_tsv(path):
    # Quotation marks have no meaning in them.
    return _read_csv(path, delimiter="\t", quoting=csv.QUOTE_NONE)


def _read_parquet(path):
    parquet = _import("pyarrow.parquet", "parquet")
    numbers = itertools.count(1)
    with _package_errors(path), parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(1024):
            for row in batch.to_pylist():
                yield f"row {next(numbers)}", row


def _read_tfds(name, split):
    tfds = _import("tensorflow_datasets", "tfds")
    with _package_errors(f"{TFDS}{name}:{split}"):
        builder = tfds.builder(name)
        builder.download_and_prepare()
        features = builder.info.features
        found = tfds.as_numpy(builder.as_dataset(split=split))
        for number, row in enumerate(found, 1):
            yield (
                f"example {number}",
                {
                    column: _as_python(features[column], value)
                    for column, value in row.items()
                },
            )


def _as_python(feature, value):
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        inner = getattr(feature, "feature", None)
        return [_as_python(inner, item) for item in value]
    if hasattr(feature, "int2str"):
        return feature.int2str(value)
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return value


def _import(name, extra):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise LabelledError(
            f"cannot import {name} ({error}): install keras_lengen with the "
            f"extra `{extra}`."
        ) from None


@contextlib.contextmanager
def _package_errors(name):
    """Turns what a package raises for damaged data into one message."""
    try:
        yield
    except LabelledError:
        raise
    except Exception as error:  # Packages have no common class of errors.
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise LabelledError(f"cannot read {name}: {reason[0]}") from None


_READERS = {
    "jsonl": _read_json_lines,
    "ndjson": _read_json_lines,
    "json": _read_json_lines,
    "csv": _read_csv,
    "tsv": _read_tsv,
}
