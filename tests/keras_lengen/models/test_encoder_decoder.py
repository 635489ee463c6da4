"""Two stacks; `test_base.py` has what all models share."""

import numpy as np
import pytest

from keras_lengen.layers import (
    ALiBi,
    InterpolatedPositions,
    RandomizedRoPE,
    RoPE,
    SinusoidalEncoding,
)
from tests.keras_lengen.models.small import (
    VOCABULARY_SIZE,
    encoder_decoder,
    reset_samplers,
    token_ids,
    with_random_weights,
)

SOURCE, TARGET = token_ids(6), token_ids(9)[:, 5:]


def telling(encoding=None, **changes):
    """A model whose attention can tell tokens apart."""
    return encoder_decoder(encoding, embedding_scale=48.0, **changes)


def translate(model, **others):
    batch = {"token_ids": SOURCE, "target_ids": TARGET, **others}
    return np.asarray(model(batch))


@pytest.mark.parametrize(
    ("normalization", "cross_encoding"), [("post", None), ("pre", ALiBi())]
)
def test_the_decoder_reads_what_the_encoder_returns(
    normalization, cross_encoding
):
    model = with_random_weights(
        encoder_decoder(
            SinusoidalEncoding(),
            num_layers=2,
            num_decoder_layers=3,
            normalization=normalization,
            cross_encoding=cross_encoding,
        )
    )
    encoder, decoder = model.encoder, model.decoder
    assert (len(encoder.blocks), len(decoder.blocks)) == (2, 3)
    memory = encoder.encoding(encoder.embedding(SOURCE) * 4)
    for block in encoder.blocks:
        memory = block(memory)
    x = decoder.encoding(decoder.embedding(TARGET) * 4)
    if normalization == "pre":
        memory = encoder.final_norm(memory)
    for block in decoder.blocks:
        x = block(x, memory=memory)
    if normalization == "pre":
        x = decoder.final_norm(x)
    np.testing.assert_allclose(
        translate(model), decoder.head(x), rtol=1e-4, atol=1e-4
    )


def test_target_tokens_see_all_of_the_source_and_no_later_targets():
    model = telling(RoPE(), num_layers=2)
    logits = translate(model)
    ids = TARGET.copy()
    ids[:, 2] = (ids[:, 2] + 1) % VOCABULARY_SIZE
    change = np.abs(translate(model, target_ids=ids) - logits).max(axis=(0, 2))
    assert (change[:2] < 1e-5).all()
    assert change[2] > 1e-2
    for token in range(6):
        ids = SOURCE.copy()
        ids[:, token] = (ids[:, token] + 1) % VOCABULARY_SIZE
        change = np.abs(translate(model, token_ids=ids) - logits)
        assert (change.max(axis=-1) > 1e-4).all()


def test_lengths_are_those_of_source_and_target():
    model = telling(RoPE(), cross_encoding=RoPE())
    logits = translate(
        model, lengths=np.array([4, 6]), target_lengths=np.array([4, 3])
    )
    for example, (source, target) in enumerate([(4, 4), (6, 3)]):
        alone = translate(
            model, token_ids=SOURCE[:, :source], target_ids=TARGET[:, :target]
        )
        np.testing.assert_allclose(
            logits[example, :target], alone[example], atol=1e-5
        )


@pytest.mark.parametrize(
    ("encoding", "others"),
    [
        (RandomizedRoPE(max_position=1000), {}),
        (
            RoPE(sampler=InterpolatedPositions(train_length=3)),
            {"reference_length": 12, "target_reference_length": 6},
        ),
    ],
    ids=["drawn", "interpolated"],
)
def test_source_and_target_have_positions_of_their_own(encoding, others):
    """Also for the cross-encoding, whose own sampler is ignored."""
    model = telling(encoding, cross_encoding=RoPE())
    reset_samplers(model)
    encoder, decoder = model.encoder.encoding, model.decoder.encoding
    assert encoder.sampler is not decoder.sampler
    given = {
        "positions": encoder.sampler(
            SOURCE, reference_length=others.get("reference_length")
        ),
        "target_positions": decoder.sampler(
            TARGET, reference_length=others.get("target_reference_length")
        ),
    }
    reset_samplers(model)
    np.testing.assert_allclose(
        translate(model, **others), translate(model, **given), atol=1e-5
    )
