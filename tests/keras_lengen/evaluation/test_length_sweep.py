"""The callback: what others see in the logs, and what it keeps."""

import csv

import keras
import numpy as np
import pytest

from keras_lengen.evaluation import LengthSweep
from tests.keras_lengen.evaluation.test_evaluate import (
    averaging,
    compile_model,
    sample,
)
from tests.refusals import refuses


def test_values_are_in_the_logs(tmp_path):
    model = compile_model(averaging(), optimizer="adam")
    sweep = LengthSweep(sample, [3, 12, 80], trained=3, every=2)
    file = tmp_path / "log.csv"
    history = model.fit(
        *sample(3),
        epochs=5,
        callbacks=[sweep, keras.callbacks.CSVLogger(file)],
        verbose=0,
    ).history
    # The first, every second, and the last.
    assert list(sweep.history) == [0, 1, 3, 4]
    last = model.evaluate(*sample(80), verbose=0, return_dict=True)
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert len(rows) == 5
    for metric, expected in last.items():
        name = f"length_80_{metric}"
        assert len(history[name]) == 4
        for found in (history[name][-1], float(rows[-1][name])):
            assert found == pytest.approx(expected, rel=1e-4)
    assert sweep.results is sweep.history[4]
    assert sweep.usable_length(0.01) == sweep.results.usable_length(0.01)


def test_training_is_not_changed():
    losses = []
    for callbacks in ([], [LengthSweep(sample, [3, 12])]):
        model = compile_model(averaging(), optimizer="adam")
        history = model.fit(
            *sample(3), epochs=3, callbacks=callbacks, verbose=0, shuffle=False
        ).history
        losses.append([*history["loss"], *history["accuracy"]])
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_a_plot(tmp_path):
    axes = pytest.importorskip("matplotlib.pyplot").subplots()[1]
    model = compile_model(averaging(), optimizer="adam")
    sweep = LengthSweep(sample, [3, 12, 80], trained=range(1, 4))
    with pytest.raises(ValueError, match="nothing is measured yet: `fit`"):
        sweep.plot()
    model.fit(*sample(3), callbacks=[sweep], verbose=0)
    assert sweep.plot(floor=0.5, label="mean", axes=axes) is axes
    assert axes.get_xscale() == "log"
    curve, floor = axes.lines
    np.testing.assert_allclose(
        curve.get_xydata(),
        [[n, each.value] for n, each in sweep.results["accuracy"].items()],
    )
    assert set(floor.get_ydata()) == {0.5}
    (shade,) = axes.patches
    assert shade.get_extents().transformed(axes.transData.inverted()).x1 >= 3
    axes.figure.savefig(tmp_path / "plot.png")


@refuses(
    ({"every": 0}, "every must be a positive integer; got 0"),
    ({"lengths": [3, -1]}, "lengths must be .* got -1"),
    ({"trained": 2.5}, "trained must be .* got 2.5"),
)
def test_wrong_arguments_raise(options):
    LengthSweep(sample, **{"lengths": [3], **options})
