import pytest

from datasets.tasks import TASKS
from datasets.text_tasks import TEXT_TASKS
from docs import class_tables
from docs.examples import ATTENTIONS, ENCODINGS, SAMPLERS

NOTEBOOKS = sorted((class_tables.ROOT / "colab").glob("*.ipynb"))


@pytest.mark.parametrize(
    ("table", "classes"),
    [
        *(("samplers", SAMPLERS), ("encodings", ENCODINGS)),
        ("families", {**ENCODINGS, **SAMPLERS, **ATTENTIONS}),
        *(("tasks", TASKS), ("text_tasks", TEXT_TASKS)),
    ],
)
def test_every_name_stands_in_its_table(table, classes):
    text = class_tables.TABLES[table]()
    assert [name for name in classes if f" `{name}`" not in text] == []


def test_families_are_those_of_the_stages():
    rows = class_tables.make_families().splitlines()
    cells = {row.split(" | ")[0][2:]: row.split(" | ")[1] for row in rows}
    assert "`RoPE`, " in cells["rotations of queries and keys"]
    assert "`ALiBi`, " in cells["biases of the attention scores"]
    assert "`SHAPE`, " in cells["added to the embeddings"]
    assert "`RandomizedRoPE`, " in cells["encodings with randomized positions"]
    assert all(cells.values())


def test_rows_of_encodings():
    rows = class_tables.make_encodings().splitlines()
    cells = {row.split(" | ")[0]: row.split(" | ")[1:] for row in rows}
    assert cells["| `RoPE`"][1] == "`RandomizedRoPE` |"
    assert cells["| `RoPE`"][0].startswith(ENCODINGS["RoPE"].__doc__[:40])
    assert cells["| `NTKRoPE`"][1] == " |"
    assert "| `RandomizedRoPE`" not in cells


def test_a_full_stop_is_dropped_and_an_ellipsis_is_not():
    text = class_tables.make_samplers()
    assert ". |" not in text.replace("... |", "")
    assert "0, 1, 2, ... |" in text


@pytest.mark.parametrize("end", ["", "/", ".git", ".git/"])
def test_badges_open_the_notebooks_of_the_main_branch(end, monkeypatch):
    address = f"https://github.com/some-owner/keras.lengen{end}"
    monkeypatch.setattr(class_tables, "REPOSITORY", address)
    header, _, *rows = class_tables.make_notebooks().splitlines()
    assert header == "| content | notebook |  |"
    colab = "https://colab.research.google.com"
    place = "github/some-owner/keras.lengen/blob/main"
    for row, path in zip(rows, NOTEBOOKS, strict=True):
        assert row.endswith(
            f" | [{path.stem}](../../colab/{path.name})"
            f" | [![Open in Colab]({colab}/assets/colab-badge.svg)]"
            f"({colab}/{place}/colab/{path.name}) |"
        )


@pytest.mark.parametrize("address", ["", "https://gitlab.com/owner/name"])
def test_there_are_no_badges_of_what_colab_cannot_open(address, monkeypatch):
    monkeypatch.setattr(class_tables, "REPOSITORY", address)
    header, _, *rows = class_tables.make_notebooks().splitlines()
    assert header == "| content | notebook |"
    for row, path in zip(rows, NOTEBOOKS, strict=True):
        assert row.endswith(f" | [{path.stem}](../../colab/{path.name}) |")
