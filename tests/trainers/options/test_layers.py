import dataclasses

import pytest

from keras_lengen.checks.arguments import constructor_arguments
from keras_lengen.layers import (
    ENCODINGS,
    AxialEncoding,
    GridPositions,
    OrdinalPositions,
    RandomizedPositions,
    RoPE,
)
from keras_lengen.layers.encodings.randomized import FixedSampler
from tests.trainers.toy import toy_config
from trainers.errors import ConfigError
from trainers.options.layers import (
    build_encoding,
    check_length,
    parse_call,
    with_max_position,
)


def test_layer_by_name_and_by_call():
    assert parse_call("--encoding", "RoPE", ENCODINGS) == (RoPE, {})
    text = "RoPE(rotary_fraction=0.25, layout='halves')"
    arguments = {"rotary_fraction": 0.25, "layout": "halves"}
    assert parse_call("--encoding", text, ENCODINGS) == (RoPE, arguments)


@pytest.mark.parametrize(
    "text", ["RoPE(", "RoPE(3)", "keras.RoPE()", "RoPE(layout=open('x'))"]
)
def test_layer_that_is_no_name_or_literal_call(text):
    with pytest.raises(ConfigError, match="literal keyword arguments"):
        parse_call("--encoding", text, ENCODINGS)


def test_unknown_layer_lists_names_and_the_nearest():
    with pytest.raises(ConfigError, match=r"Did you mean RoPE\? .* NoPE, "):
        parse_call("--encoding", "ROPE", ENCODINGS)


def test_constructor_arguments_of_a_randomized_form():
    arguments = constructor_arguments(ENCODINGS["RandomizedRoPE"])
    assert {"max_position", "layout", "sampler", "ordered"} <= set(arguments)


def test_max_position_reaches_whoever_takes_it():
    config = toy_config(encoding="RandomizedRoPE", max_position=99)
    assert build_encoding(config).sampler.max_position == 99
    config = toy_config(sampler="RandomizedPositions", max_position=99)
    assert isinstance(build_encoding(config).sampler, RandomizedPositions)
    assert build_encoding(config).sampler.max_position == 99
    config = toy_config(encoding="RandomizedRoPE(max_position=50)")
    assert build_encoding(config).sampler.max_position == 50


def test_lengths_reach_whoever_takes_them():
    # Trained on up to 3 characters, 6 tokens with their reversal.
    config = toy_config(encoding="WarpedRoPE", max_position=99)
    assert build_encoding(config).train_length == 6
    config = toy_config(encoding="WarpedRoPE(train_length=4)")
    assert build_encoding(config).train_length == 4
    config = toy_config(sampler="InterpolatedPositions")
    assert build_encoding(config).sampler.train_length == 6
    config = toy_config(sampler="ShiftedPositions", max_position=99)
    assert build_encoding(config).sampler.max_shift == 93
    config = toy_config(sampler="ShiftedPositions(max_shift=None)")
    assert build_encoding(config).sampler.max_shift is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoding": "RoPE(width=3)"}, r"no argument 'width'\. It takes"),
        ({"encoding": "RoPE(layout='odd')"}, "layout must be"),
        ({"sampler": "OrdinalPosition"}, "Did you mean OrdinalPositions"),
        ({"encoding": "RoPE(sampler=OrdinalPositions)"}, "by --sampler"),
    ],
)
def test_layers_that_cannot_be_built(changes, message):
    with pytest.raises(ConfigError, match=message):
        build_encoding(toy_config(**changes))


@pytest.mark.parametrize(
    "encoding",
    [
        name
        for name, made in ENCODINGS.items()
        if issubclass(made, FixedSampler)
    ],
)
def test_no_sampler_beside_a_fixed_one(encoding):
    config = toy_config(encoding=encoding, sampler="OrdinalPositions")
    with pytest.raises(ConfigError, match=f"{encoding} brings its own sampler"):
        build_encoding(config)


AXIAL = "AxialEncoding(row=RoPE(layout='halves'), column=RoPE)"
GRID = "GridPositions(width=5)"


def test_encodings_of_rows_and_columns():
    rows = "RandomizedPositions(max_position=9, ordered=False)"
    sampler = f"GridPositions(width=5, row={rows})"
    encoding = build_encoding(toy_config(encoding=AXIAL, sampler=sampler))
    assert isinstance(encoding, AxialEncoding)
    layouts = (encoding.row.layout, encoding.column.layout)
    assert layouts == ("halves", "interleaved")
    grid = encoding.sampler
    assert isinstance(grid, GridPositions)
    assert (grid.width, grid.row.max_position) == (5, 9)
    assert not grid.row.ordered
    assert isinstance(grid.column, OrdinalPositions)


@pytest.mark.parametrize(
    ("encoding", "sampler", "message"),
    [
        ("RoPE", GRID, "GridPositions .* only AxialEncoding"),
        ("AxialEncoding", GRID, "'row' and 'column'"),
        ("AxialEncodin(row=Rope)", GRID, "Did you mean AxialEncoding"),
        ("AxialEncoding(row=Rope)", GRID, r"Did you mean RoPE\? .* NoPE, "),
        ("AxialEncoding(row=3)", GRID, "a name or a call"),
        (f"AxialEncoding(row={AXIAL})", GRID, "cannot be 'AxialEncoding'"),
        ("AxialEncoding(row=RoPE(width=3))", GRID, "no argument 'width'"),
        ("AxialEncoding(row=RoPE, column=ALiBi)", GRID, "of one stage"),
        (
            "AxialEncoding(row=RoPE, column=RandomizedRoPE)",
            GRID,
            "column has no use for the sampler that RandomizedRoPE brings",
        ),
        (AXIAL, "GridPositions(width=0)", "width must be"),
        (
            AXIAL,
            "GridPositions(width=5, row=Ordinal)",
            "Did you mean OrdinalPositions",
        ),
        (
            AXIAL,
            "GridPositions(width=5, row=RandomizedPositions)",
            "'max_position'",
        ),
    ],
)
def test_rows_and_columns_that_cannot_be_built(encoding, sampler, message):
    with pytest.raises(ConfigError, match=message):
        build_encoding(toy_config(encoding=encoding, sampler=sampler))


TABLES = (
    "AxialEncoding(row=LearnedEncoding(max_position=3), "
    "column=LearnedEncoding(max_position=5))"
)


@pytest.mark.parametrize(
    ("encoding", "sampler", "tokens", "message"),
    [
        ("LearnedEncoding", "", 33, r"33 tokens, .* max_position=32: raise"),
        ("RoPE", "RandomizedPositions", 33, "RandomizedPositions has max_pos"),
        (AXIAL, "", 9, r"GridPositions\(width=\.\.\.\), not OrdinalPositions"),
        ("LearnedEncoding", "InterpolatedPositions", 12, "gives fractions"),
        (
            "LearnedEncoding",
            "ShiftedPositions(max_shift=26, evaluation='max')",
            12,
            r"positions of ShiftedPositions reach 37, .* has 32 rows",
        ),
        (
            "LearnedEncoding",
            "RandomizedPositions(max_position=64)",
            12,
            "max_position=64, but LearnedEncoding has only",
        ),
        (TABLES, GRID, 16, "4 rows, but LearnedEncoding has max_position=3"),
        (TABLES, "GridPositions(width=6)", 9, "6 columns, but Learned"),
        (
            TABLES,
            "GridPositions(width=5, row=RandomizedPositions(max_position=4))",
            15,
            "RandomizedPositions reach 3",
        ),
    ],
)
def test_positions_that_are_too_few(encoding, sampler, tokens, message):
    config = toy_config(encoding=encoding, sampler=sampler)
    with pytest.raises(ConfigError, match=message):
        check_length(build_encoding(config), tokens)


def test_what_words_mean_reaches_samplers_that_read_tokens():
    given = {"task": "aligned_addition", "encoding": "ClippedBias"}
    config = toy_config(
        "sequence_to_answer",
        **given,
        sampler="CoupledPositions(max_position=None)",
    )
    words = config.vocabulary.words
    sampler = build_encoding(config).sampler
    assert [words[each] for each in sampler.items] == list("0123456789")
    assert [words[each] for each in sampler.separators] == ["+"]
    assert words[sampler.end_of_prompt] == "="
    config = toy_config(
        "sequence_to_answer", **given, sampler="AbacusPositions"
    )
    assert build_encoding(config).sampler.digits == sampler.items


def test_shared_positions_need_a_table_of_the_longest_answer_alone():
    given = {
        "task": "reversed_addition",
        "encoding": "LearnedEncoding",
        "train_length": "1-10",
        "test_lengths": "100",
    }
    # A sum of 101 digits, its end, and positions that begin with 1.
    for sampler in ("AbacusPositions", "CoupledPositions"):
        config = toy_config("sequence_to_answer", **given, sampler=sampler)
        made = with_max_position(dataclasses.replace(config, max_position=0))
        assert made.max_position == 128
        few = dataclasses.replace(config, max_position=103)
        with pytest.raises(ConfigError, match="104 positions, but Learned"):
            with_max_position(few)
    assert build_encoding(made).sampler.max_position == 128
    shifts = dataclasses.replace(made, sampler="AbacusPositions")
    assert build_encoding(shifts).sampler.max_shift == 128 - (12 + 2)


def test_words_without_counterparts_have_no_coupled_positions():
    config = toy_config(
        "sequence_to_answer",
        task="copy",
        encoding="ClippedBias",
        sampler="CoupledPositions",
    )
    with pytest.raises(ConfigError, match="copy does not say which words"):
        build_encoding(config)


def test_an_encoding_may_have_another_one():
    config = toy_config(encoding="DAPE(encoding=ALiBi(asymmetry=0))")
    assert build_encoding(config).encoding.asymmetry == 0


def test_positions_that_suffice():
    for encoding, sampler, tokens in (
        ("LearnedEncoding", "", 32),
        ("LearnedEncoding", "RandomizedPositions", 32),
        ("LearnedEncoding", "ShiftedPositions", 32),
        ("RoPE", "InterpolatedPositions", 1000),
        (TABLES, GRID, 15),
    ):
        made = build_encoding(toy_config(encoding=encoding, sampler=sampler))
        check_length(made, tokens)
