import json
import re

import pytest

from tests.checkout import ROOT
from tests.docs.test_pages import TEXTS, find_blocks
from tests.shell import PYTHON, run, run_python, with_commands
from tests.trainers.toy import assert_same_weights

PAGE = TEXTS["docs/guides/after_training.md"]
ENVIRONMENT = with_commands(
    PYTHON, PYTHONPATH=str(ROOT), TF_CPP_MIN_LOG_LEVEL="3"
)
(FLAGS,) = re.findall(r"FLAGS=\"(.*)\"", PAGE)

# Minutes of commands, each of which has tests of its own.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The directory of the walk, and the output of its commands."""
    directory = tmp_path_factory.mktemp("walk")
    command = ("bash", "-e", "-c", "".join(find_blocks(PAGE, "bash")))
    done = run(*command, cwd=directory, env=ENVIRONMENT)
    return directory, done.stdout


def test_a_longer_run_is_as_long_from_the_start(walked):
    directory, output = walked
    assert "resuming after step 1000" in output
    flags = ("--encoding=RandomizedRoPE", "--steps=1500", "--workdir=whole")
    command = ("-m", "trainers.algorithmic", *FLAGS.split(), *flags)
    run_python(*command, cwd=directory)
    path = directory / "runs" / "walk" / "randomized"
    assert_same_weights(path, directory / "whole")


def test_evaluations_and_the_comparison_are_there(walked):
    directory, output = walked
    path = directory / "runs" / "walk"
    # The settings of the page learn something.
    least = {"randomized": 0.9, "plain": 0.6, "finetuned": 0.6}
    for name, score in least.items():
        scores = re.findall(rf"score (\S+) .*walk/{name}/res", output)
        assert float(scores[-1]) > score
    evaluations = sorted((path / "randomized" / "evaluations").glob("*.json"))
    assert len(evaluations) == 2
    steps = {
        json.loads(file.read_text())["final"]["step"] for file in evaluations
    }
    assert 1500 in steps
    for name in (
        *("comparison.md", "comparison.png"),
        *("report/report.html", "report/report.md", "report/report.csv"),
        *("plain/attention_matrices.png", "plain/activations.npz"),
    ):
        assert (path / name).exists()
    assert "| `RandomizedRoPE, steps=1500` |" in output
    report = (path / "report" / "report.md").read_text()
    assert "(50.4 ± 0.3)" in report and "(**100.0 ± 0.0**)" in report
    assert "| outside the trained region | 10 | 20 | 40 |" in output
    assert "/runs/walk/plain/checkpoints/checkpoint-1000.npz: " in output


def test_the_exported_models_answer_in_a_process_of_their_own(walked):
    directory, _ = walked
    programs = find_blocks(PAGE, "python")
    assert len(programs) == 2
    for program in programs:
        program += (
            "import sys\n"
            "names = {name.split('.')[0] for name in sys.modules}\n"
            "assert not names & {'trainers', 'datasets'}\n"
        )
        run_python("-c", program, cwd=directory)
    export = directory / "runs" / "walk" / "randomized" / "export"
    assert (export / "model.tflite").stat().st_size > 1000
