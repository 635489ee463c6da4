import json

import numpy as np
import pytest
from matplotlib import image

from keras_lengen.analysis import attention_weights
from tests.trainers.toy import run_toy, toy_config
from trainers import analyze
from trainers.analyses import images
from trainers.analyses.pictures import draw_pictures
from trainers.engine.backend import make_strategy
from trainers.errors import ConfigError
from trainers.imagenet import EXPERIMENT


@pytest.mark.parametrize("architecture", ["encoder", "encoder_decoder"])
def test_what_a_model_reads_and_where_it_looks(architecture, monkeypatch):
    config = toy_config("imagenet", architecture=architecture)
    model, _, problem = EXPERIMENT.make_parts(
        config, make_strategy("one_device")
    )
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


def test_a_picture_of_several_sizes(tmp_path):
    rng = np.random.default_rng(0)
    columns = [
        {
            "images": rng.integers(0, 256, (2, *size)),
            "attention": rng.random((2, *size)),
            "classes": np.array([1, 2]),
            "found": np.array([1, 3]),
        }
        for size in ((3, 3), (5, 4))
    ]
    path = tmp_path / "images.png"
    assert draw_pictures(path, columns, ["3 x 3", "5 x 4"])
    height, width, _ = image.imread(path).shape
    assert width > height > 100


@pytest.mark.product
def test_a_run(tmp_path, capsys):
    run_toy(tmp_path, trainer="imagenet", encoding="RandomizedRoPE")
    config = analyze.AnalyzeConfig(examples=2, evaluation="even")
    analyze.main(config, str(tmp_path))
    assert (tmp_path / "images.png").exists()
    assert f"plot: {tmp_path}/images.png" in capsys.readouterr().out
    assert (tmp_path / "attention.json").exists()


@pytest.mark.slow
def test_two_runs_and_a_length(tmp_path, capsys):
    runs = {"one": "RandomizedRoPE", "two": "ALiBi"}
    for name, encoding in runs.items():
        run_toy(
            tmp_path / name, trainer="sequence_to_answer", encoding=encoding
        )
    config = analyze.AnalyzeConfig(examples=3, length=5)
    paths = [str(tmp_path / name) for name in runs]
    analyze.main(config, *paths)
    record = json.loads((tmp_path / "one" / "attention.json").read_text())
    (layer,) = record["layers"]
    assert record["length"] == 5 and record["other"].startswith(paths[1])
    assert len(layer["distance"]) == 2
    pairs = np.array(layer["divergence"])
    assert pairs.shape == (2, 2)
    assert layer["least_divergence"] == pytest.approx(pairs.min())
    assert layer["mean_divergence"] == pytest.approx(pairs.mean(), abs=1e-5)
    assert "least divergence | mean divergence" in capsys.readouterr().out

    # A model is not unlike itself.
    analyze.main(analyze.AnalyzeConfig(examples=3), paths[1], paths[1])
    record = json.loads((tmp_path / "two" / "attention.json").read_text())
    (layer,) = record["layers"]
    assert layer["least_divergence"] == pytest.approx(0, abs=1e-6)

    def refuse(message, *texts, **flags):
        with pytest.raises(ConfigError, match=message):
            analyze.main(analyze.AnalyzeConfig(**flags), *texts)

    refuse("is not a length that", paths[0], length=17)
    refuse("expected RUN or RUN OTHER; got", *paths, *paths)
    run_toy(tmp_path / "three", trainer="sequence_to_answer", num_layers=2)
    refuse("has 1 layers, and .* has 2", paths[0], str(tmp_path / "three"))
    run_toy(tmp_path / "sort", trainer="sequence_to_answer", task="sort")
    refuse("reads other words than", paths[0], str(tmp_path / "sort"))
    run_toy(
        tmp_path / "four",
        trainer="sequence_to_answer",
        attention="GeometricAttention",
        encoding="NoPE",
    )
    capsys.readouterr()
    refuse("has GeometricAttention, whose weights", str(tmp_path / "four"))
    config = analyze.AnalyzeConfig(examples=3, matrices="5", activations="5")
    analyze.main(config, str(tmp_path / "four"))
    assert "no attention.json: " in capsys.readouterr().out
    names = ("attention_matrices.npz", "attention_matrices.png")
    for name in (*names, "activations.npz", "activations.json"):
        assert (tmp_path / "four" / name).exists()
    assert not (tmp_path / "four" / "attention.json").exists()
