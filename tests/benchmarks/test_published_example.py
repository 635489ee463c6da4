"""The adapter to a copy of the published code, here a small stand-in."""

import sys

import pytest
from absl import app, flags
from absl.testing import flagsaver

from tests.benchmarks.modules import imported

EXAMPLE = """
import dataclasses
import types


@dataclasses.dataclass
class Options:
    training_steps: int
    architecture: dict


class TrainingWorker:
    def __init__(self, options, use_tqdm=False):
        self.accuracy = options.training_steps / 100

    def run(self):
        results = [
            {"length": length, "accuracy": self.accuracy}
            for length in range(1, 101)
        ]
        return [], results, {}


training = types.SimpleNamespace(TrainingWorker=TrainingWorker)
_ARCHITECTURE_PARAMS = {
    "num_layers": 5,
    "positional_encodings": "NOISY_RELATIVE",
    "positional_encodings_params": {"noise_max_length": 2048},
}


def main(argv):
    options = Options(10_000, dict(_ARCHITECTURE_PARAMS))
    _, results, _ = training.TrainingWorker(options, use_tqdm=True).run()
    print("Score:", sum(result["accuracy"] for result in results))
"""


@pytest.fixture
def benchmark():
    with imported("published_example") as module:
        if not module.FLAGS.is_parsed():
            module.FLAGS.mark_as_parsed()
        yield module


@pytest.fixture
def copy(benchmark, tmp_path, monkeypatch):
    """A folder that contains a stand-in for the published code."""
    folder = tmp_path / benchmark.PACKAGE / "experiments"
    folder.mkdir(parents=True)
    (folder / "example.py").write_text(EXAMPLE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with flagsaver.flagsaver(copy=str(tmp_path)):
        yield tmp_path
    for name in [each for each in sys.modules if benchmark.PACKAGE in each]:
        del sys.modules[name]


def test_reads_the_options_of_an_encoding(benchmark, copy, capsys):
    example = benchmark.import_example()
    options = benchmark.read_options(example, "RoPE", training_steps=7)
    assert options.training_steps == 7
    assert options.architecture == {
        "num_layers": 5,
        "positional_encodings": "ROTARY",
        "positional_encodings_params": {},
    }
    # The copy is as it was, and has printed nothing.
    assert example._ARCHITECTURE_PARAMS["positional_encodings"] != "ROTARY"
    assert example.training.TrainingWorker.__name__ == "TrainingWorker"
    assert capsys.readouterr().out == ""


def test_trains_and_evaluates(benchmark, copy, capsys):
    with flagsaver.flagsaver(steps=25):
        benchmark.main([])
    assert "lengths above 40: 0.250" in capsys.readouterr().out


def test_copy_is_needed(benchmark, tmp_path):
    with pytest.raises(app.UsageError, match="clone https://github"):
        benchmark.import_example()
    with (
        flagsaver.flagsaver(copy=str(tmp_path)),
        pytest.raises(app.UsageError, match="is not a clone"),
    ):
        benchmark.import_example()


@pytest.mark.parametrize(
    ("name", "flag"),
    [("published_code", "encodings"), ("long_attention", "layers")],
)
def test_unknown_names_are_refused(name, flag):
    with (
        imported(name) as module,
        pytest.raises(flags.IllegalFlagValueError, match="names of"),
    ):
        setattr(module.FLAGS, flag, ["RoPE", "RoPe"])
