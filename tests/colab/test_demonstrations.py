import pytest

from tests.colab.cells import find_cell

NAMES = {"FIRST": 95, "SECOND": 12, "SMOKE": False}


def test_the_written_sum_is_shown_as_numbers_are(capsys):
    cell = find_cell("demonstrations", "digits = ")
    exec(cell, {**NAMES, "ANSWER": "$ 9 5 + 1 2 = 7 0 1"})
    model, python = capsys.readouterr().out.splitlines()
    assert model.split() == ["the", "model:", "107"]
    assert python.split() == ["Python:", "107"]
    assert model.index("107") == python.index("107")


def test_a_wrong_sum_is_noticed():
    cell = find_cell("demonstrations", "digits = ")
    with pytest.raises(AssertionError):
        exec(cell, {**NAMES, "ANSWER": "$ 9 5 + 1 2 = 1 0 7"})


def test_a_model_that_has_not_learned_may_write_anything(capsys):
    cell = find_cell("demonstrations", "digits = ")
    exec(cell, {**NAMES, "SMOKE": True, "ANSWER": "$ 9 5 + 1 2 = + $"})
    assert "$+" in capsys.readouterr().out
