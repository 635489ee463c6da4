import pytest

from docs import build_reference
from docs.examples import CLASSES

PAGE = build_reference.PAGE.read_text()


def cells(name):
    """The row of a class, by the heading of the column."""
    before, _, after = PAGE.partition(f"\n| [`{name}`]")
    head = before.rpartition("\n| --- ")[0].splitlines()[-1]
    row = after.splitlines()[0]
    names, values = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in (head, row)
    )
    return dict(zip(names[1:], values, strict=True))


def test_the_script_would_write_the_committed_page():
    assert build_reference.make_page() == PAGE, (
        "run python -m docs.build_reference"
    )


@pytest.mark.parametrize("name", CLASSES)
def test_everything_has_a_section_and_is_in_a_table(name):
    assert PAGE.count(f"\n### {name}\n") == 1
    before_sections, _ = PAGE.split("## Every encoding")
    assert f"`{name}`" in before_sections


NOT_FAR = "yes; far distances are not distinguished"
SELECTIVE = f"{64 * 16 + (16 + 4) * 32:,} in every layer"


def test_properties_are_those_of_the_papers():
    for name, column, expected in (
        ("NoPE", "parameters", "none"),
        ("RoPE", "parameters", "none"),
        ("LearnedEncoding", "parameters", f"{2048 * 64:,}"),
        ("LogKERPLE", "parameters", f"{2 * 8} for all layers"),
        ("BAM", "parameters", f"{3 * 8} in every layer"),
        ("SelectiveRoPE", "parameters", SELECTIVE),
        ("T5Bias", "parameters", f"{32 * 8} for all layers"),
        ("FIRE", "parameters", f"{33 * 8 + 66} in every layer"),
        ("LearnedEncoding", "past training", "no: the table ends"),
        ("RoPE", "past training", "yes"),
        ("ShawEncoding", "past training", NOT_FAR),
        ("XPos", "attention", "causal"),
        ("NoPE", "past and future", "equal"),
        ("LogKERPLE", "past and future", "different with `asymmetry`"),
        ("ALiBi", "past and future", "different"),
        ("WarpedPositions", "draws", "one for each example"),
        ("OrdinalPositions", "in evaluation", "0, 1, 2, ..."),
        ("GridPositions", "positions", "int32 pairs"),
        ("AugmentedPositions", "positions", "float32"),
    ):
        assert cells(name)[column] == expected, name
