"""Pictures and numbers of attention matrices and of activations."""

import json

import numpy as np
import pytest
from matplotlib import image

from keras_lengen.analysis import block_activations
from tests.trainers.toy import build_toy, stand_in_problem
from trainers.analyses import activations, matrices
from trainers.analyses.activations import find_activations, write_activations
from trainers.analyses.loaded import Loaded, read
from trainers.analyses.matrices import find_matrices, write_matrices
from trainers.errors import ConfigError
from trainers.records.opened_run import OpenedRun, registered


def load(path, trainer="algorithmic"):
    """A model of a trainer that has not been trained."""
    model, _, problem = build_toy(trainer)
    problem.prepare()
    known = (registered()[trainer], problem.config)
    opened = OpenedRun(path, *known, "", "", path / "none.npz")
    return Loaded(opened, model, problem)


@pytest.mark.parametrize(
    "trainer",
    [
        # Tokens, images with a decoder, and text that is written.
        "algorithmic",
        pytest.param("imagenet", marks=pytest.mark.product),
        pytest.param("sequence_to_answer", marks=pytest.mark.product),
    ],
)
def test_files_of_a_run(trainer, tmp_path, capsys):
    loaded = load(tmp_path, trainer)
    problem = loaded.problem
    longest = max(problem.lengths)
    write_matrices(loaded, (longest,), 2)
    write_activations(loaded, (longest,), 3)
    lengths = {problem.longest_trained, longest}

    stored = np.load(tmp_path / "attention_matrices.npz")
    assert len(stored.files) == len(lengths)
    for name, values in stored.items():
        length = int(name.rpartition("length_")[2])
        lengths.remove(length)
        assert len(values) == 2
        assert values.shape[1] == values.shape[2] >= length

    arrays = np.load(tmp_path / "activations.npz")
    record = json.loads((tmp_path / "activations.json").read_text())
    (layer,) = record["layers"]
    name = layer["layer"]
    np.testing.assert_allclose(
        arrays[f"{name}/directions"] @ arrays[f"{name}/directions"].T,
        np.eye(2),
        atol=1e-9,
    )
    for length, share in layer["share_outside_by_length"].items():
        points = arrays[f"{name}/length_{length}"]
        distances = np.linalg.norm(
            points[:, None] - arrays[f"{name}/fitted"], axis=-1
        ).min(axis=1)
        outside = distances > arrays[f"{name}/radius"]
        assert share == pytest.approx(outside.mean())
    for picture in ("attention_matrices.png", "activations.png"):
        height, _, _ = image.imread(tmp_path / picture).shape
        assert height > 300
    assert "| outside the trained region |" in capsys.readouterr().out


def test_padding_does_not_count(tmp_path, monkeypatch):
    loaded = load(tmp_path)
    model, problem = loaded.model, loaded.problem
    counts = [10, 7, 3]

    def read_shorter(*which):
        return {**read(*which), "lengths": np.array(counts, "int32")}

    monkeypatch.setattr(activations, "read", read_shorter)
    found = find_activations(model, problem, 5, 3)
    inputs = problem.inputs(read_shorter(problem, 5, 3))
    (blocks,) = block_activations(model, inputs).values()
    (values,) = found.values()
    for number, count in enumerate(counts):
        np.testing.assert_allclose(
            values[number], blocks[number, :count], atol=1e-6
        )


def test_matrices_are_the_largest_weights_of_the_heads(tmp_path):
    loaded = load(tmp_path)
    layers, counted = find_matrices(loaded.model, loaded.problem, 5, 3)
    (weights,) = layers.values()
    assert weights.shape == (3, 10, 10)
    assert counted.all()
    # The larger weights of two heads, in each of which a row sums to 1.
    sums = weights.sum(axis=-1)
    assert np.all((sums >= 1 - 1e-5) & (sums <= 2))


def test_what_cannot_be_drawn(tmp_path):
    loaded = load(tmp_path)
    message = r"--matrices=7 is not a length that .*: choose from 1, 2, 3, 5, 6"
    with pytest.raises(ConfigError, match=message):
        loaded.check_lengths("--matrices", (5, 7))
    # Activations that do not differ.
    for variable in loaded.model.variables:
        variable.assign(variable * 0)
    with pytest.raises(ConfigError, match="cannot draw the activations of"):
        write_activations(loaded, (5,), 2)


def test_the_picture_names_trained_lengths_and_is_whole(tmp_path, figures):
    found = {
        n: ({"attention": np.ones((1, n, n))}, np.ones((1, n), bool))
        for n in (3, 4)
    }
    path = tmp_path / "matrices.png"
    matrices._draw(path, stand_in_problem(2, 4), found)
    (plot,) = figures
    labels = [axes.get_ylabel().partition("\n")[0] for axes in plot.axes]
    # Each with its color bar.
    assert labels == ["length 3", "length 4 (trained)", "", ""]
    for axes in plot.axes[:2]:
        assert all(tick == int(tick) for tick in axes.get_yticks())
    # The title is wider than one block.
    assert image.imread(path).shape[1] > 120 * plot.get_figwidth()
