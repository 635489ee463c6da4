"""What tests of figures and of finished runs share."""

import functools

import pytest

from tests.trainers.toy import EACH_STEP, run_toy


@pytest.fixture
def figures(monkeypatch):
    """The figures that are saved."""
    from matplotlib.figure import Figure

    found, save = [], Figure.savefig

    def remember(figure, *arguments, **options):
        found.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", remember)
    return found


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A function that returns directory and results of a trainer's toy run.

    Tests read these runs, and write nothing there but evaluations.
    """

    @functools.cache
    def train(trainer="algorithmic"):
        path = tmp_path_factory.mktemp(trainer) / "run"
        more = {"evaluate_every": 1} if trainer == "algorithmic" else {}
        return path, run_toy(path, trainer=trainer, **EACH_STEP, **more)

    return train
