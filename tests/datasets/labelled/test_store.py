import os

import pytest

from datasets.labelled.columns import Columns
from datasets.labelled.rows import LabelledError
from tests.datasets.labelled.toy import open_toy


def test_examples_are_read_back_in_order(tmp_path):
    rows = [
        {"input": "ab" * (n % 3 + 1), "target": "xyz"[n % 3]}
        for n in range(5000)
    ]
    store = open_toy(tmp_path / "rows.jsonl", rows, kind="label")
    assert len(store.examples) == 5000
    for number in (0, 1, 4095, 4096, 4999):
        pieces = [store.pieces[piece] for piece in store.input(number)]
        assert "".join(pieces) == rows[number]["input"]
        (label,) = store.target(number)
        assert store.classes[label] == rows[number]["target"]
        assert store.examples[number]["length"] == len(pieces)


@pytest.mark.parametrize(
    ("given", "targets", "kind", "tokens"),
    [
        ("ab", [0, 1] * 5, "label", "char"),
        ("ab", [*"abcdefghi"], "answer", "char"),
        (["a"], [[1]] * 9, "tags", "words"),
        (["a", "b"], [["c"]] * 9, "answer", "words"),
    ],
)
def test_kinds_are_guessed(tmp_path, given, targets, kind, tokens):
    rows = [{"input": given, "target": target} for target in targets]
    store = open_toy(tmp_path / "rows.jsonl", rows)
    assert store.kind == kind
    assert store.tokenizer.startswith(tokens)


def test_a_wrong_guess_of_the_kind_is_refused(tmp_path):
    rows = [{"input": "ab", "target": max(n - 1200, 0)} for n in range(1500)]
    with pytest.raises(LabelledError, match="300 different 'target', but few"):
        open_toy(tmp_path / "rows.jsonl", rows)
    assert open_toy(tmp_path / "rows.jsonl", kind="label").kind == "label"


def test_words_with_tags_end_at_spaces(tmp_path):
    row = {"input": "don't do it.", "target": "AUX VERB PRON"}
    store = open_toy(
        tmp_path / "rows.jsonl", [row], kind="tags", tokens="words"
    )
    assert store.pieces == ["don't", "do", "it."]


def test_the_length_may_have_a_column(tmp_path):
    rows = [{"input": "ab", "target": "c d e", "depth": n} for n in (7, "8")]
    for column, expected in (("depth", [7, 8]), ("target", [3, 3])):
        store = open_toy(
            tmp_path / "rows.jsonl",
            rows,
            columns=Columns("input", "target", column),
            tokens="words",
        )
        assert store.examples["length"].tolist() == expected
    with pytest.raises(LabelledError, match="there is no column 'size'"):
        open_toy(tmp_path / "rows.jsonl", columns=Columns(length="size"))


def test_a_store_is_kept_until_its_file_changes(tmp_path):
    path, row = tmp_path / "rows.jsonl", {"input": "ab", "target": "x"}
    first = open_toy(path, [row] * 4)
    for kind, tokens in (("auto", "auto"), ("label", "characters")):
        again = open_toy(path, kind=kind, tokens=tokens)
        assert (again.path, again.digest) == (first.path, first.digest)
    assert open_toy(path, tokens="bytes").digest != first.digest
    os.utime(path, (1, 1))
    touched = open_toy(path)
    assert touched.path != first.path and touched.digest == first.digest
    longer = open_toy(path, [row] * 5)
    assert longer.digest != first.digest
    (longer.path / "about.json").write_text("{")
    with pytest.raises(LabelledError, match="is damaged: remove it"):
        open_toy(path)
