"""The committed reference page is true, whole and up to date."""

import re

import numpy as np
import pytest

from docs import build_reference, docstrings
from docs.examples import (
    ANALYSIS,
    CLASSES,
    ENCODINGS,
    MODELS,
    RETROFIT,
    SAMPLERS,
    WITH_MODELS,
    make,
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


@pytest.mark.parametrize("name", [*MODELS, *WITH_MODELS, *RETROFIT, *ANALYSIS])
def test_models_and_analysis_have_a_section(name):
    assert PAGE.count(f"\n### {name}\n") == 1


def test_links_lead_somewhere():
    anchors = {
        heading.lower() for heading in re.findall(r"^#+ (.*)$", PAGE, re.M)
    }
    assert set(re.findall(r"\]\(#([^)]*)\)", PAGE)) <= anchors


def test_all_pictures_are_linked_and_nothing_else():
    linked = re.findall(r"!\[[^]]+\]\((.*)\)", PAGE)
    folder = build_reference.PICTURES
    found = [(build_reference.PAGE.parent / path).resolve() for path in linked]
    assert sorted(found) == sorted(folder.iterdir())
    for path in folder.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("NoPE", "none"),
        ("RoPE", "none"),
        ("LearnedEncoding", f"{2048 * 64:,}"),
        ("RelativeEncoding", f"{64 * 64 + 2 * 64:,} in every layer"),
        ("ShawEncoding", f"{33 * 8} in every layer"),
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
        ("NoPE", "past training", "yes"),
        ("FIRE", "past training", "yes"),
        ("T5Bias", "past training", "yes; far distances are not distinguished"),
        (
            "ShawEncoding",
            "past training",
            "yes; far distances are not distinguished",
        ),
        ("XPos", "attention", "causal"),
        ("XPos", "past and future", ""),
        ("NoPE", "past and future", "equal"),
        ("Sandwich", "past and future", "equal"),
        ("FIRE", "past and future", "equal"),
        ("LogKERPLE", "past and future", "different with `asymmetry`"),
        ("ALiBi", "past and future", "different"),
        ("BAM", "past and future", "different"),
        ("NAPE", "past and future", "equal"),
        ("RoPE", "past and future", "different"),
        ("SelectiveRoPE", "past and future", "different"),
        ("SHAPE", "past and future", "different"),
        ("OrdinalPositions", "draws", "no"),
        ("WarpedPositions", "draws", "one for each example"),
        ("OrdinalPositions", "in evaluation", "0, 1, 2, ..."),
        ("GridPositions", "positions", "int32 pairs"),
        ("AugmentedPositions", "positions", "float32"),
        ("ContinuousPositions", "positions", "float32"),
    ],
)
def test_properties_are_those_of_the_papers(name, column, expected):
    assert cells(name)[column] == expected


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, cls in ENCODINGS.items()
        if "asymmetry" in docstrings.format_signature(cls, name)
    ],
)
def test_asymmetry_tells_past_from_future(name):
    encoding = make(name)
    encoding.asymmetry = 0.5
    build_reference.build(encoding)
    assert build_reference._compare_past_and_future(encoding) == "different"


@pytest.mark.parametrize("name", SAMPLERS)
def test_evaluation_is_what_the_table_says(name):
    said = cells(name)["in evaluation"].partition("; `")[0]
    short, long = (
        build_reference._sample_positions(make(name), tokens, training=False)[0]
        for tokens in (64, 128)
    )
    assert said.startswith("0, 1, 2, ...") == np.array_equal(
        short.reshape(-1)[:64], np.arange(64)
    )
    assert ("below `train_length`" in said) == (
        long.max() < 64 and name != "GridPositions"
    )
