"""Flags that name classes of a user, in a module or a file."""

import sys

import pytest

from keras_lengen.layers import PaTHAttention, Recipe
from keras_lengen.models import presets
from tests.trainers.toy import toy_config
from trainers.algorithmic import EXPERIMENT, make_task
from trainers.errors import ConfigError
from trainers.options.layers import (
    build_attention,
    build_encoding,
    merge_arguments,
)
from trainers.records.opened_run import open_run

SOURCE = """
import dataclasses
import keras
from datasets.curricula import Fixed
from datasets.tasks.parity_check import ParityCheck
from keras_lengen.layers import ALiBi, MultiHeadAttention, OrdinalPositions

class Forgotten(ALiBi): pass
class Longest(Fixed): pass

register = keras.saving.register_keras_serializable(package=__name__)
@register
class Slopes(ALiBi): pass
@register
class Indices(OrdinalPositions): pass
@register
class Attention(MultiHeadAttention): pass

@dataclasses.dataclass(frozen=True)
class Parity(ParityCheck):
    odd: bool = False
"""


@pytest.fixture(params=["file", "module"])
def own(request, tmp_path, monkeypatch):
    """The name of a module, as flags have it, and its file."""
    name = f"own_classes_of_{tmp_path.name}"
    path = tmp_path / f"{name}.py"
    path.write_text(SOURCE)
    monkeypatch.setattr(sys, "path", [*sys.path])
    if request.param == "module":
        sys.path.append(str(tmp_path))
        return name, path
    monkeypatch.chdir(tmp_path)
    return path.name, path


def test_a_run_of_own_classes(own, tmp_path):
    module, path = own
    config = toy_config(
        encoding=f"{module}:Slopes(alibi_bias_max=4)",
        sampler=f"{module}:Indices",
        attention=f"{module}:Attention",
        task=f"{module}:Parity(odd=True)",
        curriculum=f"{module}:Longest",
    )
    encoding = build_encoding(config)
    assert encoding.alibi_bias_max == 4
    assert type(encoding.sampler).__name__ == "Indices"
    assert build_attention(config).layer.__name__ == "Attention"
    assert make_task(config.task).odd
    if module != path.name:
        return  # A module of the path is found; the rest is the same.
    run = tmp_path / "run"
    results = EXPERIMENT.train(config, run)
    assert open_run(str(run)).config == config
    assert EXPERIMENT.train(config, run) == results

    # With another source, the run neither resumes nor opens.
    with path.open("a") as file:
        file.write("CONSTANT = 1\n")
    for use in (
        lambda: open_run(str(run)),
        lambda: EXPERIMENT.train(config, run),
    ):
        with pytest.raises(ConfigError, match=r"another source .*Slopes and"):
            use()


def test_names_that_a_module_lacks(own):
    for name, message in (
        ("Slope", r"takes a subclass of PositionalEncoding, but .* It has S"),
        ("Parity", "has a Parity that is no subclass of PositionalEncoding"),
        ("Slopes(max=1)", "Slopes has no argument 'max'"),
        ("Forgotten", r"Forgotten is not registered, .* `@keras\.saving\.reg"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_encoding(toy_config(encoding=f"{own[0]}:{name}"))


def test_files_that_cannot_be_imported(tmp_path):
    for file, source, message in (
        ("json.py", "", "another module json, .*: rename the file"),
        ("broken_1.py", "def f(:", r"SyntaxError: .*broken_1\.py, line 1\)"),
        ("broken_2.py", "\n1 / 0", r"ZeroDivision.*broken_2\.py, line 2\)"),
        ("broken_3.py", "import nowhere_at_all", "No module named 'nowhere_"),
    ):
        path = tmp_path / file
        path.write_text(source)
        with pytest.raises(ConfigError, match=message):
            toy_config(encoding=f"{path}:Slopes")


def test_where_nothing_is_found(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no file .*nothing\.py"):
        toy_config(encoding=f"{tmp_path}/nothing.py:Slopes")
    with pytest.raises(ConfigError, match=r"no module nothing\.here here"):
        toy_config(encoding="nothing.here:Slopes")


def test_arguments_of_attention():
    name = "PaTHAttention(use_forget_gate=True)"
    config = toy_config(attention=name, score_factor="head", chunk_size=8)
    made = {"use_forget_gate": True, "score_factor": "head", "chunk_size": 8}
    assert build_attention(config) == Recipe(PaTHAttention, **made)
    merged = merge_arguments(presets["t5_decoder"], config)
    made |= {"dropout": 0.1, "scale_scores": False}
    assert merged["attention"] == Recipe(PaTHAttention, **made)
    for attention, message in (
        ("PaTHAttention(a=1)", "PaTHAttention has no argument 'a'"),
        ("PaTHAttention(num_heads=2)", "must not have num_heads, which is an"),
        ("PaTHAttention(sliding_window=0)", "sliding_window must be a positi"),
        ("MultiHeadAttention(score_factor='head')", "and --score_factor both"),
    ):
        config = toy_config(attention=attention, score_factor="head")
        with pytest.raises(ConfigError, match=message):
            build_attention(config)
