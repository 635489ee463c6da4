"""The program of the guide to models of KerasHub runs."""

import re

import pytest

from keras_lengen.retrofit import FAMILIES
from tests.docs.test_pages import TEXTS, find_blocks

GUIDE = TEXTS["docs/guides/retrofit.md"]


@pytest.mark.product
def test_program(tmp_path, monkeypatch):
    pytest.importorskip("keras_hub")
    monkeypatch.chdir(tmp_path)
    variables = {}
    exec("".join(find_blocks(GUIDE, "python")), variables)
    assert variables["task"].backbone is variables["model"].backbone
    assert (tmp_path / "longer.keras").exists()


def test_the_table_has_all_families():
    (table,) = re.findall(r"## Which models\n(.*?)\n\n- ", GUIDE, re.DOTALL)
    named = table.replace("-", "").replace(" ", "").lower()
    for name in FAMILIES:
        assert name.removesuffix("Backbone").lower() in named
