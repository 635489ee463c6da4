import pytest

from tests.colab.cells import find_cell

CELL = r'print("\n".join(ANSWERS))'
NAMES = {"NUMBERS": [(95, 12), (1, 2)], "SMOKE": False}
RIGHT = [
    "$ ^ 9 5 + ^ 1 2 = 7 0 1\n95 + 12 = 107 (right)",
    "$ ^ 1 + ^ 2 = 3 0\n1 + 2 = 3 (right)",
]
WRONG = "$ ^ 1 + ^ 2 = 4 0\n1 + 2 = 4 (wrong, it is 3)"


def test_sums_are_shown_as_the_model_writes_them(capsys):
    cell = find_cell("demonstrations", CELL)
    exec(cell, {**NAMES, "ANSWERS": RIGHT})
    assert capsys.readouterr().out.splitlines()[1] == "95 + 12 = 107 (right)"


def test_a_wrong_sum_is_noticed():
    cell = find_cell("demonstrations", CELL)
    with pytest.raises(AssertionError):
        exec(cell, {**NAMES, "ANSWERS": [RIGHT[0], WRONG]})


def test_a_model_that_has_not_learned_may_write_anything(capsys):
    cell = find_cell("demonstrations", CELL)
    exec(cell, {**NAMES, "SMOKE": True, "ANSWERS": ["$ ^ 9 5 = + $", WRONG]})
    assert "+ $" in capsys.readouterr().out
