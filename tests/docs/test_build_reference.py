"""The committed reference page is true, whole and up to date."""

import pytest

from docs import build_reference
from docs.examples import (
    CLASSES,
)

PAGE = build_reference.PAGE.read_text()


def cells(name):
    """The row of a class, by the heading of the column."""
    lines = PAGE.splitlines()
    row = next(
        index
        for index, line in enumerate(lines)
        if line.startswith(f"| [`{name}`]")
    )
    head = max(
        index for index in range(row) if lines[index].startswith("| --- ")
    )
    return dict(
        zip(
            *(
                [cell.strip() for cell in lines[index].split("|")[1:-1]]
                for index in (head - 1, row)
            ),
            strict=True,
        )
    )


def test_the_script_would_write_the_committed_page():
    assert build_reference.make_page() == PAGE, (
        "run python -m docs.build_reference"
    )


@pytest.mark.parametrize("name", CLASSES)
def test_everything_has_a_section_and_is_in_a_table(name):
    assert PAGE.count(f"\n### {name}\n") == 1
    before_sections, _ = PAGE.split("## Every encoding")
    assert f"`{name}`" in before_sections


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("NoPE", "none"),
        ("RoPE", "none"),
        ("LearnedEncoding", f"{2048 * 64:,}"),
        ("LogKERPLE", f"{2 * 8} for all layers"),
        ("BAM", f"{3 * 8} in every layer"),
        ("SelectiveRoPE", f"{64 * 16 + (16 + 4) * 32:,} in every layer"),
        ("T5Bias", f"{32 * 8} for all layers"),
        ("FIRE", f"{33 * 8 + 66} in every layer"),
    ],
)
def test_parameters_are_those_of_the_formulas(name, parameters):
    assert cells(name)["parameters"] == parameters


@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [
        ("LearnedEncoding", "past training", "no: the table ends"),
        ("RoPE", "past training", "yes"),
        (
            "ShawEncoding",
            "past training",
            "yes; far distances are not distinguished",
        ),
        ("XPos", "attention", "causal"),
        ("NoPE", "past and future", "equal"),
        ("LogKERPLE", "past and future", "different with `asymmetry`"),
        ("ALiBi", "past and future", "different"),
        ("WarpedPositions", "draws", "one for each example"),
        ("OrdinalPositions", "in evaluation", "0, 1, 2, ..."),
        ("GridPositions", "positions", "int32 pairs"),
        ("AugmentedPositions", "positions", "float32"),
    ],
)
def test_properties_are_those_of_the_papers(name, column, expected):
    assert cells(name)[column] == expected
