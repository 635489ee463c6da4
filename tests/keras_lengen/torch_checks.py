"""What the library does on PyTorch, whose tensors refuse what a GPU's do.

`test_backends.py` runs it, with the plugin `like_cuda`, in a process of its
own.
"""

import keras
import numpy as np
import pytest
from keras import ops

from keras_lengen.layers import ATTENTIONS, GridPositions, RandomizedRoPE, RoPE
from keras_lengen.models import LoopedDecoder, TransformerDecoder
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models import small

LENGTHS = np.array([4, 6])


def assert_learns(model, inputs):
    """Asserts that a loss has finite gradients, and fits one step."""
    targets = small.token_ids() % small.OUTPUT_SIZE
    logits = model(inputs, training=True)
    ops.sum(ops.square(logits)).backward()
    gradients = [
        weight.value.grad
        for weight in model.trainable_weights
        if weight.value.grad is not None
    ]
    assert gradients
    assert all(bool(ops.all(ops.isfinite(each))) for each in gradients)
    model.zero_grad()
    model.compile(
        "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    before = model.get_weights()
    assert np.isfinite(model.fit(inputs, targets, verbose=0).history["loss"][0])
    changed = map(np.array_equal, before, model.get_weights())
    assert not all(changed)


@pytest.mark.parametrize("name", encodings.ROWS)
def test_a_model_with_each_encoding_learns(name):
    model = small.make("decoder", name)
    assert_learns(model, {"token_ids": small.token_ids(), "lengths": LENGTHS})


@pytest.mark.parametrize("name", encodings.BIDIRECTIONAL)
def test_variants_of_encodings_are_called(name):
    model = small.make("encoder", name)
    logits = model(small.token_ids())
    assert bool(ops.all(ops.isfinite(logits)))


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


MODELS = {
    "encoder": lambda: small.encoder(RandomizedRoPE(max_position=64)),
    "decoder": lambda: small.decoder(RoPE()),
    "encoder-decoder": lambda: small.encoder_decoder(RoPE()),
    "looped decoder": lambda: LoopedDecoder(
        vocabulary_size=small.VOCABULARY_SIZE,
        num_layers=1,
        loops=2,
        num_heads=2,
        model_dim=16,
        encoding=RoPE(),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_learn_and_are_saved(name, tmp_path):
    model = MODELS[name]()
    inputs = small.inputs(model, small.token_ids())
    assert_learns(model, inputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    inputs |= {"positions": np.arange(6)}
    np.testing.assert_allclose(
        *(ops.convert_to_numpy(each(inputs)) for each in (model, loaded)),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    "name", [each for each in encodings.FAMILIES if "Random" not in each]
)
def test_generation_is_the_full_pass(name):
    model = small.make("decoder", name, output_size=small.VOCABULARY_SIZE)
    small.assert_generation_is_the_full_pass(model, small.token_ids(), LENGTHS)


def test_every_way_to_generate():
    model = TransformerDecoder(
        vocabulary_size=small.VOCABULARY_SIZE,
        num_layers=1,
        num_heads=2,
        model_dim=16,
        encoding=RoPE(),
    )
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
