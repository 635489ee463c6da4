import dataclasses

from trainers import sweep
from trainers.sweeps.options import SweepConfig


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
