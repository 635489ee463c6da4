"""Figures in sentences are computed from the reports."""

import re

import pytest

from docs.figures import LISTS, replace_figures, scores
from tests.docs.test_pages import TEXTS

NUMBER = r"(?<![\w.,])\d+\.\d+(?![\w]|\.\d)"


def page(*lines, text):
    return "\n".join(["1.5", "<!-- figures", *lines, "-->", text])


def test_numbers_are_replaced_in_their_order():
    for lines, text, expected in (
        (["max(0.25, 0.5)"], "Not 0.1, 3 or v0.1.2.", "Not 0.50, 3 or v0.1.2."),
        ([".1f: [1 / 3, 7]"], "0.99 and 0.99", "0.3 and 7.0"),
        (["0.004"], "a rate of 0.1", "a rate of 0.004"),
        (["at_least(0.989)"], "at least 0.5", "at least 0.98"),
        (["at_most(0.981)"], "at most 0.5", "at most 0.99"),
        (
            ["1 / 4"],
            "`0.1` [a](b0.1)\n| 0.1 |\n```\n0.1\n```\n0.1",
            "`0.1` [a](b0.1)\n| 0.1 |\n```\n0.1\n```\n0.25",
        ),
        (
            ["max(1, 0)"],
            "0.1\n<!-- figures\n0.6\n-->\n0.1",
            "1.00\n<!-- figures\n0.6\n-->\n0.6",
        ),
    ):
        found = replace_figures(page(*lines, text=text))
        assert found == page(*lines, text=expected)
        assert replace_figures(found) == found


def test_too_many_or_too_few_figures_raise():
    for text in ("0.1", "0.1 0.2 0.3"):
        with pytest.raises(ValueError, match=r"2 figures, but [13] numbers"):
            replace_figures(page("[0.5, 0.6]", text=text))


def test_named_methods_are_all_that_do_it():
    for names, task, length, least in (
        ("FINDING", "needle", 1280, 0.98),
        ("RECALLING", "mqar", 80, 0.985),
        ("COPYING_SYMBOLS", "unique_copy", 140, 0.9),
    ):
        found = scores(task, length, choose=min)
        able = {name for name, share in found.items() if share > least}
        assert able == set(LISTS[names])


def test_figures_of_recommendations_are_those_of_the_results():
    known = {
        figure
        for name, text in TEXTS.items()
        if name.startswith("docs/results/")
        and not name.endswith(("index.md", "reproducing.md"))
        for figure in re.findall(NUMBER, text)
    }
    advice = re.sub(
        r"`[^`]*`|\]\([^)]*\)", "", TEXTS["docs/guides/choosing.md"]
    )
    found = set(re.findall(NUMBER, advice))
    assert len(found) > 10
    assert found <= known
