"""Compiled programs follow what happens to their model."""

import keras
import numpy as np
import pytest

from keras_lengen.layers import ALiBi
from tests.keras_lengen.models import small

pytestmark = pytest.mark.filterwarnings("ignore:.*quantize:UserWarning")

SIZES = {"output_size": small.VOCABULARY_SIZE, "num_layers": 1}


def enable_lora(model):
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.Dense):
            layer.enable_lora(2)
            for weight in layer.trainable_weights:
                weight.assign(np.ones(weight.shape) / 4)


def change_policy(model):
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.Dense):
            layer.dtype_policy = keras.DTypePolicy("mixed_bfloat16")


def freeze(model):
    model.trainable = False


def unfreeze(model):
    model.trainable = True


def scale_logits(model):
    getattr(model, "decoder", model).logit_scale = 3.0


CHANGES = {
    "enable_lora": enable_lora,
    "quantize": lambda model: model.quantize("int8"),
    "policy": change_policy,
    "frozen": freeze,
    "unfrozen": unfreeze,
    "an attribute": scale_logits,
}


def next_logits(model, batch):
    return np.asarray(model(batch))[:, -1]


@pytest.mark.product
@pytest.mark.parametrize(
    ("name", "change", "jit_compile"),
    [
        *(("decoder", change, False) for change in CHANGES),
        ("decoder", "enable_lora", True),
        ("encoder_decoder", "enable_lora", False),
    ],
)
def test_generation_follows_the_model(name, change, jit_compile):
    model = small.with_random_weights(small.MODELS[name](ALiBi(), **SIZES))
    if change == "unfrozen":
        freeze(model)
    batch = small.inputs(model, small.token_ids())

    def generated():
        _, logits = model.generate(
            batch, 1, return_logits=True, jit_compile=jit_compile
        )
        return logits[:, 0]

    before = generated()
    np.testing.assert_allclose(before, next_logits(model, batch), atol=1e-4)
    CHANGES[change](model)
    after = next_logits(model, batch)
    np.testing.assert_allclose(generated(), after, atol=0.05)
    moved = np.abs(after - before).max()
    assert (moved > 1e-3) == (change not in ("frozen", "unfrozen"))


@pytest.mark.product
def test_tied_embeddings_survive_quantization():
    model = small.decoder(ALiBi(), **SIZES, tie_embeddings=True)
    before = np.asarray(model(small.token_ids()))
    model.quantize("int8")
    after = np.asarray(model(small.token_ids()))
    np.testing.assert_allclose(after, before, atol=0.05 * np.ptp(before))
