"""Flags of the sweep, and those that its runs get."""

import pytest

from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.sweeps.options import SweepConfig, parse_shard, split_flags


def test_mistakes():
    for flags, message in (
        ({}, "--grid is missing: a file of your own, or one of plain"),
        ({"grid": "mine.py", "size": "paper"}, "--size has no effect with a"),
        ({"shard": "8/8"}, "--shard takes a number from 0 .* got '8/8'"),
        ({"address": "auto"}, "--address has no effect with --engine=local"),
        ({"engine": "ray", "jobs": 2}, "no effect with --engine=ray"),
        ({"gpus": 1}, "--gpus needs --jobs"),
        ({"flags": "steps=1,steps=2"}, "--flags takes names with values"),
    ):
        given = {"grid": "ruoss_table_1", **flags} if flags else {}
        with pytest.raises(ConfigError, match=message):
            resolve(SweepConfig, {}, given)


def test_flags_with_commas_of_their_own():
    assert parse_shard("3/8") == (3, 8)
    text = "encoding=RoPE(max_wavelength=1, x=(2,3)),test_lengths=5,6-8,steps=1"
    assert split_flags(text) == {
        "encoding": "RoPE(max_wavelength=1, x=(2,3))",
        "test_lengths": "5,6-8",
        "steps": "1",
    }
    assert split_flags("") == {}
