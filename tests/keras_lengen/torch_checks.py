"""What the library does on PyTorch, whose tensors refuse what a GPU's do.

`test_backends.py` runs it, with the plugin `like_cuda`, in its own process.
"""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.conformance import models as promises
from keras_lengen.layers import ATTENTIONS, GridPositions, RoPE
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models import small

LENGTHS = np.array([4, 6])


def assert_learns(model, inputs):
    """Asserts that gradients are finite, and that a step changes weights."""
    ops.sum(ops.square(model(inputs, training=True))).backward()
    gradients = [weight.value.grad for weight in model.trainable_weights]
    gradients = [each for each in gradients if each is not None]
    assert gradients
    assert all(bool(ops.all(ops.isfinite(each))) for each in gradients)
    model.zero_grad()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    before = model.get_weights()
    model.fit(inputs, small.token_ids() % small.OUTPUT_SIZE, verbose=0)
    assert not all(map(np.array_equal, before, model.get_weights()))


@pytest.mark.parametrize("name", encodings.ROWS)
def test_a_model_with_each_encoding_learns(name):
    model = small.make("decoder", name)
    assert_learns(model, {"token_ids": small.token_ids(), "lengths": LENGTHS})


@pytest.mark.parametrize("variant", samplers.VARIANTS)
@pytest.mark.parametrize("training", [False, True])
def test_samplers_number_tokens(variant, training):
    positions = samplers.make(variant)(
        small.token_ids(), lengths=LENGTHS, training=training
    )
    for axis in keras.tree.flatten(positions):
        assert np.isfinite(ops.convert_to_numpy(axis)).all()


def test_a_layer_as_an_argument_is_checked():
    with pytest.raises(ValueError, match="which only AxialEncoding takes"):
        RoPE(sampler=GridPositions(width=3))


@pytest.mark.parametrize("attention", ATTENTIONS.values())
def test_attentions_learn_and_generate(attention):
    model = small.decoder(attention=attention, output_size=7)
    assert_learns(model, small.token_ids())
    assert model.generate(small.token_ids(), 2).shape == (2, 2)


@pytest.mark.parametrize("name", small.MODELS)
def test_models_learn_and_are_saved(name, tmp_path):
    model = small.MODELS[name](RoPE())
    inputs = small.inputs(model, small.token_ids())
    assert_learns(model, inputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        *(ops.convert_to_numpy(each(inputs)) for each in (model, loaded)),
        atol=1e-6,
    )


@pytest.mark.parametrize("name", ["RoPE", "ALiBi", "LearnedEncoding"])
def test_generation_is_the_full_pass(name):
    model = small.make("decoder", name, output_size=small.VOCABULARY_SIZE)
    promises._check_generation(model)


def test_every_way_to_generate():
    model = small.decoder(RoPE(), output_size=small.VOCABULARY_SIZE)
    prompt = {"token_ids": small.token_ids(), "lengths": LENGTHS}
    greedy = model.generate(prompt, 4)
    assert np.array_equal(np.stack(list(model.stream(prompt, 4)), 1), greedy)
    assert np.array_equal(model.generate(prompt, 4, top_k=1, seed=1), greedy)
    sampled = model.generate(
        prompt, 4, temperature=0.9, top_p=0.9, repetition_penalty=1.2, seed=1
    )
    assert sampled.shape == model.generate(prompt, 4, num_beams=2).shape
    conversation = model.start_conversation(max_length=16)
    for _ in range(2):
        assert conversation.generate(small.token_ids(), 2).shape == (2, 2)
