"""What models attend to: pictures of one run, and two runs compared."""

import json

import numpy as np
import pytest

from keras_lengen.analysis import attention_weights
from tests.trainers.toy import build_toy, run_toy
from trainers import analyze
from trainers.analyses import images
from trainers.errors import ConfigError


@pytest.mark.parametrize("architecture", ["encoder", "encoder_decoder"])
def test_what_a_model_reads_and_where_it_looks(architecture, monkeypatch):
    model, _, problem = build_toy("imagenet", architecture=architecture)
    seen = []

    def remember(*args, **kwargs):
        seen.append(attention_weights(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr(images, "attention_weights", remember)
    found = images.look(model, problem, length=25, examples=3)
    # The weights of a layer, the last one, for one image at a time.
    weights = np.concatenate([next(iter(w.values())) for w, _ in seen])
    assert all(len(of_image) == 1 for of_image, _ in seen)
    queries = {"encoder": 25, "encoder_decoder": 1}[architecture]
    assert weights.shape == (3, 2, queries, 25)
    wanted = weights.reshape(3, -1, 5, 5).mean(axis=1)[..., :4]
    np.testing.assert_allclose(found["attention"], wanted, rtol=1e-5)
    store = problem.stores["test"]
    for picture, label in zip(found["images"], found["classes"], strict=True):
        same = (store.images[5, 4] == picture).all(axis=(1, 2))
        assert label in store.labels[same]
    outputs = np.concatenate([problem.logits(outputs) for _, outputs in seen])
    np.testing.assert_array_equal(found["found"], outputs.argmax(axis=-1))


@pytest.mark.product
def test_a_run(finished, capsys):
    path, _ = finished("imagenet")
    config = analyze.AnalyzeConfig(examples=2, evaluation="even")
    analyze.main(config, str(path))
    assert f"plot: {path}/images.png" in capsys.readouterr().out
    assert (path / "images.png").exists()


ANSWERS = {"trainer": "sequence_to_answer", "steps": 1, "generated_examples": 0}
RUNS = {
    "two": {"encoding": "ALiBi"},
    "layers": {"num_layers": 2},
    "sort": {"task": "sort"},
    "other": {"attention": "GeometricAttention", "encoding": "NoPE"},
}


@pytest.mark.product
def test_two_runs_and_a_length(finished, tmp_path, capsys):
    paths = {"one": str(finished("sequence_to_answer")[0])}
    for name, changes in RUNS.items():
        paths[name] = str(tmp_path / name)
        run_toy(tmp_path / name, **ANSWERS, **changes)

    def run(*names, **flags):
        config = analyze.AnalyzeConfig(examples=3, **flags)
        analyze.main(config, *(paths[name] for name in names))
        with open(f"{paths[names[0]]}/attention.json") as file:
            return json.load(file)

    record = run("one", "two", length=5)
    (layer,) = record["layers"]
    assert record["length"] == 5 and record["other"].startswith(paths["two"])
    pairs = np.array(layer["divergence"])
    assert pairs.shape == (2, 2)
    assert layer["least_divergence"] == pytest.approx(pairs.min())
    assert layer["mean_divergence"] == pytest.approx(pairs.mean(), abs=1e-5)

    # A model is not unlike itself.
    record = run("two", "two")
    (layer,) = record["layers"]
    assert layer["least_divergence"] == pytest.approx(0, abs=1e-6)

    for names, flags, message in (
        (["one"], {"length": 17}, "is not a length that"),
        (["one", "layers"], {}, "has 1 layers, and .* has 2"),
        (["one", "sort"], {}, "reads other words than"),
        (["other"], {}, "has GeometricAttention, whose weights"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(*names, **flags)

    capsys.readouterr()
    config = analyze.AnalyzeConfig(examples=3, matrices="5", activations="5")
    analyze.main(config, paths["other"])
    assert "no attention.json: " in capsys.readouterr().out
    found = {path.name for path in (tmp_path / "other").iterdir()}
    assert "attention.json" not in found
    assert {"attention_matrices.npz", "activations.json"} <= found
