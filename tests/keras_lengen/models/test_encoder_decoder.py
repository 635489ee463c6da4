"""Two stacks; `test_base.py` has what all models share."""

import numpy as np
import pytest

from keras_lengen.conformance.requirements import restart
from keras_lengen.layers import (
    ALiBi,
    InterpolatedPositions,
    RandomizedRoPE,
    RoPE,
    SinusoidalEncoding,
)
from tests.keras_lengen.models import small

SOURCE, TARGET = small.token_ids(6), small.token_ids(9)[:, 5:]


def translate(model, **others):
    batch = {"token_ids": SOURCE, "target_ids": TARGET, **others}
    return np.asarray(model(batch))


@pytest.mark.parametrize(
    ("normalization", "cross_encoding"),
    [("post", None), ("pre", ALiBi()), (None, None)],
)
def test_the_decoder_reads_what_the_encoder_returns(
    normalization, cross_encoding
):
    model = small.with_random_weights(
        small.encoder_decoder(
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
    model = small.encoder_decoder(
        encoding, embedding_scale=48.0, cross_encoding=RoPE()
    )
    restart(model)
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
    restart(model)
    np.testing.assert_allclose(
        translate(model, **others), translate(model, **given), atol=1e-5
    )
