"""What the library computes on the backend of this process.

python -m tests.keras_lengen.backend_outputs weights.npz outputs.npz
"""

import sys

import keras
import numpy as np
from keras import ops

from tests.keras_lengen.layers.attention import subjects
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models.small import inputs, make, token_ids

SHARED = np.array([1, 4, 5, 11, 30, 47], "int32")
OWN = np.array([SHARED, [0, 2, 3, 8, 9, 40]], "int32")
LENGTHS = np.array([4, 6])
# Padding stands at the end.
REAL = np.arange(subjects.TOKENS) < np.array([[7], [9]])
DOCUMENTS = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 2]])


def models():
    """A small encoder for every encoding, and others for one of each kind."""
    return {
        **{name: make("encoder", name) for name in encodings.BIDIRECTIONAL},
        **{
            f"decoder of {name}": make("decoder", name)
            for name in encodings.FAMILIES
        },
        "encoder-decoder of RoPE": make("encoder_decoder", "RoPE"),
    }


def outputs(models):
    """Arrays by name, of encodings, models and what samplers do not draw."""
    arrays = {}
    for key, model in models.items():
        batch = inputs(model, token_ids(), positions=OWN)
        if key in encodings.VARIANTS:
            features = encodings.random_inputs(model.encoding.stage)
            arrays[key] = encodings.encode(
                encoding_of(model), features, SHARED, causal=False
            )
            arrays[f"{key}/causal"] = encodings.encode(
                encoding_of(model), features, OWN, causal=True
            )
        else:
            packed = {"positions": SHARED, "segment_ids": DOCUMENTS}
            packed = inputs(model, token_ids(), **packed)
            arrays[f"{key}/packed"] = model(packed)
        arrays[f"{key}/logits"] = model(batch)
    for name in subjects.FIRST[::2]:
        arrays[f"{name} in chunks"] = attend(name)[REAL]
    for variant in samplers.VARIANTS:
        sampler = samplers.make(variant)
        first, second = (
            ops.convert_to_numpy(sampler(token_ids(), lengths=LENGTHS))
            for _ in "12"
        )
        if np.array_equal(first, second):
            arrays[variant] = first
    return {
        name: ops.convert_to_numpy(ops.cast(array, "float32"))
        for name, array in arrays.items()
    }


def attend(name):
    """Outputs of attention in chunks, compiled if the backend is JAX."""
    layer = subjects.make(name, chunk_size=4)

    def call(states, mask):
        return layer(
            *(states, states),
            positions=subjects.POSITIONS,
            value_mask=mask,
            use_causal_mask=subjects.is_causal(layer, name),
        )

    if keras.backend.backend() == "jax":
        import jax

        call = jax.jit(call)
    inputs = map(ops.convert_to_tensor, (subjects.STATES, REAL))
    return ops.convert_to_numpy(call(*inputs))


def encoding_of(model):
    """The encoding of a model, or of its first attention: it has weights."""
    if model.encoding.stage == "embeddings":
        return model.encoding
    return model.blocks[0].attention_layer.encoding


def weights_of(models):
    """The weights of models as arrays by name."""
    return {
        f"{variant}/{index}": weight
        for variant, model in models.items()
        for index, weight in enumerate(model.get_weights())
    }


def main(weights_path, outputs_path):
    weights = np.load(weights_path)
    ours = models()
    for variant, model in ours.items():
        count = len(model.weights)
        model.set_weights([weights[f"{variant}/{i}"] for i in range(count)])
    np.savez(outputs_path, **outputs(ours))


if __name__ == "__main__":
    main(*sys.argv[1:])
