import dataclasses

import pytest

from keras_lengen.layers import ENCODINGS, OrdinalPositions, RoPE
from keras_lengen.layers.encodings.randomized import FixedSampler
from tests.trainers.toy import toy_config
from trainers.errors import ConfigError
from trainers.options.layers import (
    build_encoding,
    check_length,
    parse_call,
    with_max_position,
)


def make(trainer="algorithmic", **flags):
    return build_encoding(toy_config(trainer, **flags))


def test_a_layer_by_name_and_by_call():
    assert parse_call("--encoding", "RoPE", ENCODINGS) == (RoPE, {})
    text = "RoPE(rotary_fraction=0.25, layout='halves')"
    arguments = {"rotary_fraction": 0.25, "layout": "halves"}
    assert parse_call("--encoding", text, ENCODINGS) == (RoPE, arguments)
    nested = make(encoding="DAPE(encoding=ALiBi(asymmetry=0))")
    assert nested.encoding.asymmetry == 0


def test_positions_and_lengths_reach_whoever_takes_them():
    for flags, attribute, value in (
        ({"encoding": "RandomizedRoPE"}, "sampler.max_position", 99),
        # Trained on up to 3 characters, 6 tokens with their reversal.
        ({"encoding": "WarpedRoPE"}, "train_length", 6),
        ({"encoding": "WarpedRoPE(train_length=4)"}, "train_length", 4),
        ({"sampler": "InterpolatedPositions"}, "sampler.train_length", 6),
        ({"sampler": "ShiftedPositions"}, "sampler.max_shift", 93),
    ):
        found = make(**flags, max_position=99)
        for name in attribute.split("."):
            found = getattr(found, name)
        assert found == value, attribute


AXIAL = "AxialEncoding(row=RoPE(layout='halves'), column=RoPE)"
GRID = "GridPositions(width=5)"


def test_encodings_of_rows_and_columns():
    rows = "RandomizedPositions(max_position=9, ordered=False)"
    encoding = make(
        encoding=AXIAL, sampler=f"GridPositions(width=5, row={rows})"
    )
    layouts = (encoding.row.layout, encoding.column.layout)
    assert layouts == ("halves", "interleaved")
    grid = encoding.sampler
    assert (grid.width, grid.row.max_position) == (5, 9)
    assert not grid.row.ordered
    assert isinstance(grid.column, OrdinalPositions)


FIXED = [n for n, made in ENCODINGS.items() if issubclass(made, FixedSampler)]


def test_layers_that_cannot_be_built():
    for encoding, sampler, message in (
        ("RoPE(3)", "", "literal keyword"),
        ("ROPE", "", r"Did you mean RoPE\? .* NoPE, "),
        ("RoPE(width=3)", "", r"no argument 'width'\. It takes"),
        ("RoPE", "OrdinalPosition", "Did you mean OrdinalPositions"),
        ("RoPE(sampler=OrdinalPositions)", "", "by --sampler"),
        (FIXED[0], "OrdinalPositions", "brings its own sampler"),
        ("RoPE", GRID, "GridPositions .* only AxialEncoding"),
        ("AxialEncoding", GRID, "'row' and 'column'"),
        ("AxialEncoding(row=Rope)", GRID, r"Did you mean RoPE\? .* NoPE, "),
        (f"AxialEncoding(row={AXIAL})", GRID, "cannot be 'AxialEncoding'"),
        ("AxialEncoding(row=RoPE, column=RandomizedRoPE)", GRID, "no use for"),
        (AXIAL, "GridPositions(width=5, row=Ordinal)", "mean OrdinalPositions"),
    ):
        with pytest.raises(ConfigError, match=message):
            make(encoding=encoding, sampler=sampler)


SHIFTED = "ShiftedPositions(max_shift=26, evaluation='max')"
REACH = "positions of ShiftedPositions reach 37, .* has 32 rows"
TABLES = (
    "AxialEncoding(row=LearnedEncoding(max_position=3), "
    "column=LearnedEncoding(max_position=5))"
)


def test_positions_that_are_too_few():
    for encoding, sampler, few, message in (
        ("LearnedEncoding", "", 33, r"33 tokens, .* max_position=32: raise"),
        ("RoPE", "RandomizedPositions", 33, "RandomizedPositions has max_pos"),
        (AXIAL, "", 9, r"GridPositions\(width=\.\.\.\), not OrdinalPositions"),
        ("LearnedEncoding", SHIFTED, 12, REACH),
        (TABLES, GRID, 16, "4 rows, but LearnedEncoding has max_position=3"),
        (TABLES, "GridPositions(width=6)", 9, "6 columns, but Learned"),
    ):
        with pytest.raises(ConfigError, match=message):
            check_length(make(encoding=encoding, sampler=sampler), few)


def test_positions_that_suffice():
    check_length(make(encoding="LearnedEncoding"), 32)
    check_length(make(encoding=TABLES, sampler=GRID), 15)


ANSWERS = {"trainer": "sequence_to_answer", "encoding": "ClippedBias"}


def test_what_words_mean_reaches_samplers_that_read_tokens():
    flags = {**ANSWERS, "task": "aligned_addition"}
    words = toy_config(**flags).vocabulary.words
    sampler = make(**flags, sampler="CoupledPositions").sampler
    assert [words[each] for each in sampler.items] == list("0123456789")
    assert [words[each] for each in sampler.separators] == ["+"]
    assert words[sampler.end_of_prompt] == "="
    other = make(**flags, sampler="AbacusPositions").sampler
    assert other.digits == sampler.items
    with pytest.raises(ConfigError, match="copy does not say which words"):
        make(**ANSWERS, task="copy", sampler="CoupledPositions")


@pytest.mark.parametrize("sampler", ["AbacusPositions", "CoupledPositions"])
def test_shared_positions_need_a_table_of_the_longest_answer_alone(sampler):
    config = toy_config(
        **{**ANSWERS, "encoding": "LearnedEncoding"},
        task="reversed_addition",
        train_length="1-10",
        test_lengths="100",
        sampler=sampler,
    )
    # A sum of 101 digits, its end, and positions that begin with 1.
    made = with_max_position(dataclasses.replace(config, max_position=0))
    assert made.max_position == 128
    few = dataclasses.replace(config, max_position=103)
    with pytest.raises(ConfigError, match="104 positions, but Learned"):
        with_max_position(few)
    found = build_encoding(made).sampler
    if sampler == "CoupledPositions":
        assert found.max_position == 128
    else:
        assert found.max_shift == 128 - (12 + 2)
