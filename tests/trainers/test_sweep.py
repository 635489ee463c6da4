import dataclasses

import pytest

from trainers import sweep
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.sweeps.options import SweepConfig, parse_shard, split_flags


def test_dry_run(tmp_path, capsys):
    known = {"grid": "confounding_table_2", "root": str(tmp_path / "root")}
    config = SweepConfig(dry_run=True, shard="0/2", **known)
    sweep.main(config)
    counts, cost, *commands, _ = capsys.readouterr().out.splitlines()
    assert len(commands) == 3
    assert commands[0].startswith("missing: python -m trainers.enwik8 --")
    assert "--initialize_from=" in commands[1]
    assert counts.endswith("small: 4 missing")
    assert cost.startswith("no estimate for 4 runs: none of their trainer")
    sweep.main(dataclasses.replace(config, all_commands=True))
    _, _, *every = capsys.readouterr().out.splitlines()
    assert every[:3] == commands
    assert len(every) == 4
    assert not (tmp_path / "root").exists()


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
