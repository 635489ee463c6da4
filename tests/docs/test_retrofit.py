"""The program of the guide to models of KerasHub runs."""

import pathlib
import re

import pytest

from keras_lengen.retrofit import FAMILIES

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "retrofit.md").read_text()


@pytest.mark.product
def test_program(tmp_path, monkeypatch):
    pytest.importorskip("keras_hub")
    monkeypatch.chdir(tmp_path)
    program = "".join(
        re.findall(r"^```python\n(.*?)^```", GUIDE, re.DOTALL | re.M)
    )
    variables = {}
    exec(compile(program, "retrofit.md", "exec"), variables)
    assert variables["task"].backbone is variables["model"].backbone
    assert (tmp_path / "longer.keras").exists()


def test_the_table_has_all_families():
    (table,) = re.findall(r"## Which models\n(.*?)\n\n- ", GUIDE, re.DOTALL)
    named = table.replace("-", "").replace(" ", "").lower()
    for name in FAMILIES:
        assert name.removesuffix("Backbone").lower() in named
