"""SmolLM2: the conversion of its file, cached reading, and its numbers."""

import json

import numpy as np
import pytest

from benchmarks import measure, smollm2_weights
from tests.benchmarks.modules import imported

SIZES = {
    "block_count": 2,
    "embedding_length": 32,
    "feed_forward_length": 48,
    "head_count": 4,
    "head_count_kv": 2,
    "layer_norm_rms_epsilon": 1e-5,
    "freq_base": 10000.0,
}
SHAPES = {
    "attn_norm": (32,),
    "attn_q": (32, 32),
    "attn_k": (16, 32),
    "attn_v": (16, 32),
    "attn_output": (32, 32),
    "ffn_norm": (32,),
    "ffn_gate": (48, 32),
    "ffn_up": (48, 32),
    "ffn_down": (32, 48),
}


TOKENS = np.random.default_rng(1).integers(40, size=25).astype("int32")


def make_tensors():
    """Random tensors, named as in the file."""
    numbers = np.random.default_rng(0)
    shapes = {
        "token_embd": (40, 32),
        "output_norm": (32,),
        **{
            f"blk.{index}.{name}": shape
            for index in range(SIZES["block_count"])
            for name, shape in SHAPES.items()
        },
    }
    return {
        f"{name}.weight": numbers.normal(size=shape, scale=0.4)
        for name, shape in shapes.items()
    }


@pytest.mark.product
def test_reading_in_chunks():
    """Losses of chunks, with a cache, are those of the tensors in NumPy."""
    pytest.importorskip("keras_hub")
    from keras_lengen.retrofit import RetrofittedModel

    tensors = make_tensors()
    logits = smollm2_weights.compute_logits(SIZES, tensors, TOKENS[:-1])
    losses = np.log(np.exp(logits).sum(-1)) - logits[np.arange(24), TOKENS[1:]]
    backbone = smollm2_weights.make_backbone(SIZES, tensors, "float32")
    with imported("smollm2") as smollm2:
        if not smollm2.FLAGS.is_parsed():
            smollm2.FLAGS.mark_as_parsed()
        reader = smollm2.Reader(RetrofittedModel(backbone))
        found = [
            reader.read(TOKENS[first : last + 1])
            for first, last in ((0, 10), (10, 20), (20, 24))
        ]
        np.testing.assert_allclose(np.concatenate(found), losses, rtol=1e-4)
        # A question is forgotten.
        before = reader.predict(TOKENS[:5])[0]
        np.testing.assert_array_equal(reader.predict(TOKENS[:5])[0], before)


def test_unfinished_report(tmp_path, capsys):
    """Rows of a report of the same options are kept, in order."""
    path = tmp_path / "report.json"
    measured = []

    def measure_one(name):
        measured.append(name)
        return {"recipe": name}

    def run(options, chosen):
        return [
            row["recipe"]
            for row in measure.measure_rows(
                path, "benchmarks.some", options, "abc", chosen, measure_one
            )
        ]

    assert run({"steps": 1}, "c") == ["c"]
    assert run({"steps": 1}, "abc") == ["a", "b", "c"]
    assert measured == ["c", "a", "b"]
    assert len(json.loads(path.read_text())["rows"]) == 3
    with pytest.raises(SystemExit) as error:
        run({"steps": 2}, "a")
    assert error.value.code == 2
    assert "choose another --output" in capsys.readouterr().err
    assert len(json.loads(path.read_text())["rows"]) == 3
