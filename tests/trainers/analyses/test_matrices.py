"""Pictures of attention matrices."""

import types

import numpy as np
from matplotlib.image import imread

from trainers.analyses import matrices


def test_the_picture_names_trained_lengths_and_is_whole(tmp_path, figures):
    problem = types.SimpleNamespace(
        trained_lengths=(2, 4),
        longest_trained=4,
        length_name="length",
        describe_length=str,
    )
    found = {
        n: ({"attention": np.ones((1, n, n))}, np.ones((1, n), bool))
        for n in (3, 4)
    }
    path = tmp_path / "matrices.png"
    matrices._draw(path, problem, found)
    (plot,) = figures
    labels = [axes.get_ylabel().partition("\n")[0] for axes in plot.axes]
    assert labels == ["length 3", "length 4 (trained)"]
    for axes in plot.axes:
        assert all(tick == int(tick) for tick in axes.get_yticks())
    # The title is wider than one block.
    assert imread(path).shape[1] > 120 * plot.get_figwidth()
