"""Pictures of attention matrices."""

import numpy as np
from matplotlib.image import imread

from tests.trainers.toy import stand_in_problem
from trainers.analyses import matrices


def test_the_picture_names_trained_lengths_and_is_whole(tmp_path, figures):
    found = {
        n: ({"attention": np.ones((1, n, n))}, np.ones((1, n), bool))
        for n in (3, 4)
    }
    path = tmp_path / "matrices.png"
    matrices._draw(path, stand_in_problem(2, 4), found)
    (plot,) = figures
    labels = [axes.get_ylabel().partition("\n")[0] for axes in plot.axes]
    assert labels == ["length 3", "length 4 (trained)"]
    for axes in plot.axes:
        assert all(tick == int(tick) for tick in axes.get_yticks())
    # The title is wider than one block.
    assert imread(path).shape[1] > 120 * plot.get_figwidth()
