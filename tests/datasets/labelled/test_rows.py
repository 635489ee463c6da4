import gzip
import json

import pyarrow
import pyarrow.parquet
import pytest

from datasets.labelled.rows import (
    LONGEST_LINE,
    LabelledError,
    call_source,
    open_source,
)
from tests.datasets.labelled.toy import open_toy

ROWS = [{"text": "a, b", "label": "x"}, {"text": 'say "c"', "label": "ß"}]
LINES = "".join(f"{json.dumps(row)}\n" for row in ROWS).encode()
CSV = 'text,label\n"a, b",x\n"say ""c""",ß\n'.encode()
UNNAMED_COLUMNS = ',text,label,\n0,"a, b",x,\n1,"say ""c""",ß,\n'.encode()
GOOD = b'{"input": "ab", "target": "x"}\n' * 4


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lines.jsonl", LINES),
        ("windows.ndjson", b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n")),
        ("blank.jsonl", b"\n" + LINES + b"\n\n"),
        ("packed.jsonl.gz", gzip.compress(LINES, mtime=0)),
        ("array.json", json.dumps(ROWS, indent=1).encode()),
        ("comma.csv", CSV),
        ("windows.csv", b"\xef\xbb\xbf" + CSV.replace(b"\n", b"\r\n")),
        ("unnamed.csv", UNNAMED_COLUMNS),
        ("tab.tsv", 'text\tlabel\na, b\tx\nsay "c"\tß\n'.encode()),
        ("packed.csv.gz", gzip.compress(CSV, mtime=0)),
    ],
)
def test_every_format_has_the_same_rows(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    source = open_source(str(tmp_path / name))
    assert source.name == name
    assert [row for _, row in source.rows()] == ROWS


def test_parquet(tmp_path):
    path = tmp_path / "rows.parquet"
    rows = [{"tokens": ["a", "b"], "tags": [0, 1]}] * 3000
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert [row for _, row in open_source(str(path)).rows()] == rows


def test_a_data_set_of_tensorflow_datasets(monkeypatch):
    import tensorflow as tf
    import tensorflow_datasets as tfds

    features = tfds.features.FeaturesDict(
        {
            "tokens": tfds.features.Sequence(tfds.features.Text()),
            "tags": tfds.features.Sequence(
                tfds.features.ClassLabel(names=["NOUN", "VERB"])
            ),
            "label": tfds.features.ClassLabel(names=["bad", "good"]),
        }
    )

    class Builder:
        info = type("Info", (), {"features": features})

        def download_and_prepare(self):
            pass

        def as_dataset(self, split):
            assert split == "test"
            rows = {"tokens": [["é", "b"]], "tags": [[1, 0]], "label": [1]}
            return tf.data.Dataset.from_tensor_slices(rows)

    monkeypatch.setattr(tfds, "builder", {"tagged": Builder()}.__getitem__)
    ((_, row),) = open_source("tfds:tagged:test").rows()
    assert row == {
        "tokens": ["é", "b"],
        "tags": ["VERB", "NOUN"],
        "label": "good",
    }
    with pytest.raises(LabelledError, match="cannot read tfds:other:train: "):
        list(open_source("tfds:other").rows())


BAD = {
    "broken": (b'{"input": "a",', "it is no JSON object (Expecting"),
    "deep": (b"[" * 100_000, "it is no JSON object (nested too deeply)"),
    "number": (b"5", "it is of type int, instead of a dict of columns"),
    "missing": (b'{"input": "a"}', "it has no 'target'"),
    "null": (b'{"input": null, "target": "x"}', "it has no 'input'"),
    "fraction": (b'{"input": "a", "target": 0.5}', "'target' is 0.5, a number"),
    "nested": (b'{"input": {}, "target": "x"}', "'input' is of type dict"),
    "empty": (b'{"input": " ", "target": "x"}', "its 'input' is empty"),
    "no items": (b'{"input": [], "target": "x"}', "its 'input' is empty"),
    "items": (b'{"input": ["a"], "target": "x"}', "items are tokens: give "),
    "labels": (b'{"input": "a", "target": ["x"]}', "a list, instead of a la"),
    "latin": (b'{"input": "\xe9", "target": "x"}', "is not text in UTF-8"),
    "half": (b'{"input": "\\ud800", "target": "x"}', "is not text in UTF-8"),
    "long": (b"a" * (LONGEST_LINE + 9), "more than 16,777,216 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_named_or_skipped(tmp_path, name):
    line, reason = BAD[name]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD + line + b"\n" + GOOD)
    with pytest.raises(LabelledError) as caught:
        open_toy(path)
    assert str(caught.value).startswith("rows.jsonl, line 5: ")
    assert reason in str(caught.value)
    assert not list((tmp_path / "kept").iterdir())
    store = open_toy(path, bad_lines="skip")
    assert (len(store.examples), store.skipped) == (8, 1)
    assert store.first_bad.startswith("line 5: ")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"", "a.jsonl has no example: it is empty"),
        ("a.jsonl", GOOD.decode().encode("utf-16"), "is text in UTF-16: save"),
        ("a.jsonl", b'{"a": 1, "b": 2, "c": 3}\n', "columns are a, b, c: name"),
        ("a.json", b'[{"input": 1},', "a.json is no JSON array"),
        ("a.csv", b"a,b\n", "a.csv has no example: it is empty"),
        ("a.csv", b"a;b\n1;2\n", "has a single column, 'a;b'"),
        ("a.csv", b"a,a\n1,2\n", "names a column twice"),
        (
            "a.csv",
            b"a,b\n1,2,3\n",
            "all 1 lines are bad. The first is line 2: ",
        ),
        ("a.csv", b'a,b\n"1,2\n3,4\n', "line 2: the quotation mark that opens"),
        ("a.jsonl.gz", b"a", "cannot read .*: Not a gzipped file"),
        (
            "a.jsonl.gz",
            gzip.compress(GOOD * 99, mtime=0)[:-20],
            "ended before the end",
        ),
        ("a.parquet", b"a", "cannot read .*Parquet"),
        ("a.xlsx", b"a", "ends in none of .jsonl, .ndjson"),
    ],
)
def test_a_wrong_file_is_refused_whatever_is_skipped(
    tmp_path, name, content, message
):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LabelledError, match=message):
        open_toy(tmp_path / name, bad_lines="skip")
    assert not list(tmp_path.glob("kept/*"))


def test_a_function_of_ones_own():
    def read():
        yield {"a": 1}
        yield 2
        raise KeyError("b")

    rows = call_source("data.py:read", read).rows()
    assert next(rows) == ("example 1", {"a": 1})
    assert isinstance(next(rows)[1], LabelledError)
    with pytest.raises(LabelledError, match=r"failed after 2 examples: KeyErr"):
        next(rows)
