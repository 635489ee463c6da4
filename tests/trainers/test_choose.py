"""The choice of an encoding, whose runs train in this process."""

import functools

import pytest

from tests.trainers.toy import TOY, toy_config
from trainers import choose
from trainers.algorithmic import EXPERIMENT
from trainers.choosing import advice
from trainers.choosing.options import (
    CANDIDATES,
    make_config_class,
    parse_candidates,
)
from trainers.errors import ConfigError
from trainers.options.fields import resolve

FLAGS = {name: value for name, value in TOY.items() if name != "encoding"}
make_config = functools.partial(
    resolve, make_config_class(EXPERIMENT.config), EXPERIMENT.presets
)


@pytest.fixture
def trained(monkeypatch):
    """Names of the runs that are trained, in this process."""
    names = []

    def train(config, root, runs):
        for run in runs:
            if not root.is_finished(run):
                names.append(f"{run.column} {run.flags['seed']}")
                made = root.make_config(run)
                EXPERIMENT.train(made, root.find_workdir(run))

    monkeypatch.setattr(choose, "_train", train)
    return names


@pytest.mark.product
def test_candidates_are_trained_until_they_differ(
    tmp_path, trained, monkeypatch, capsys
):
    for module in (choose, advice):
        monkeypatch.setattr(module, "is_above_floor", lambda *_: True)
    flags = {**FLAGS, "root": str(tmp_path), "seeds": 1, "most_seeds": 2}
    given = "NoPE,SkippedPositions+RoPE"
    config = make_config({**flags, "candidates": given})
    choose.main(config, "algorithmic")
    # No difference can be seen with one seed.
    names = [*parse_candidates(given)]
    assert trained == [f"{name} {seed}" for seed in (0, 1) for name in names]
    text = (tmp_path / "report" / "report.md").read_text()
    assert "| candidate | score |" in text
    assert all(f"| {name} | " in text for name in names)
    html = (tmp_path / "report" / "report.html").read_text()
    assert "<h1>Encodings for reverse_string</h1>" in html
    printed = capsys.readouterr().out
    assert "no difference seen with one seed. Each is trained with" in printed
    trained.clear()
    choose.main(config, "algorithmic")
    assert not trained


@pytest.mark.parametrize("model", CANDIDATES)
def test_candidates_follow_the_kind_of_model(model):
    config = make_config({**FLAGS, "model": model})
    first = toy_config(model=model)
    found = choose.find_candidates(config, EXPERIMENT, first)
    assert tuple(found) == CANDIDATES[model]
    for flags in found.values():
        toy_config(model=model, **flags)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"candidates": "RoPE"}, "at least two different encodings; got"),
        ({"candidates": "RoPE,a+b+c"}, "takes encodings separated by commas"),
        ({"most_seeds": 1}, "--most_seeds=1 is below --seeds=2"),
        ({"candidates": "RoPE,Rope"}, "--encoding cannot be 'Rope'. Did you"),
        ({"candidates": "RoPE,ALiBi", "steps": 0}, "--steps must be at"),
    ],
)
def test_flags_that_cannot_work(tmp_path, flags, message):
    with pytest.raises(ConfigError, match=message):
        config = make_config({**FLAGS, "root": str(tmp_path), **flags})
        choose.main(config, "algorithmic")
