import pytest

from datasets.tasks import TASKS
from datasets.text_tasks import TEXT_TASKS
from docs import class_tables
from docs.examples import ATTENTIONS, ENCODINGS, SAMPLERS


def test_every_name_stands_in_its_table():
    for table, classes in (
        *(("samplers", SAMPLERS), ("encodings", ENCODINGS)),
        ("families", {**ENCODINGS, **SAMPLERS, **ATTENTIONS}),
        *(("tasks", TASKS), ("text_tasks", TEXT_TASKS)),
    ):
        text = class_tables.TABLES[table]()
        assert [name for name in classes if f" `{name}`" not in text] == []


@pytest.mark.parametrize("end", ["", ".git/"])
def test_badges_open_the_notebooks_of_the_main_branch(end, monkeypatch):
    address = f"https://github.com/some-owner/keras.lengen{end}"
    monkeypatch.setattr(class_tables, "REPOSITORY", address)
    header, _, *rows = class_tables.make_notebooks().splitlines()
    assert header == "| content | notebook |  |"
    colab = "https://colab.research.google.com"
    place = "github/some-owner/keras.lengen/blob/main"
    notebooks = sorted((class_tables.ROOT / "colab").glob("*.ipynb"))
    for row, path in zip(rows, notebooks, strict=True):
        assert row.endswith(
            f" | [{path.stem}](../../colab/{path.name})"
            f" | [![Open in Colab]({colab}/assets/colab-badge.svg)]"
            f"({colab}/{place}/colab/{path.name}) |"
        )
