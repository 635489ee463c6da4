"""The memory of a decoder; `test_base.py` has what all models share."""

import numpy as np
import pytest

from keras_lengen.layers import ALiBi, RoPE
from tests.keras_lengen.models.small import decoder, token_ids

IDS = token_ids()
MEMORY = np.random.default_rng(1).normal(size=(2, 5, 16))
MEMORY = MEMORY.astype("float32")
ORDER = np.array([3, 0, 4, 2, 1])


def reader(encoding=None, **changes):
    """A decoder that attends to a memory, and can tell its tokens apart."""
    return decoder(
        encoding, cross_attention=True, embedding_scale=48.0, **changes
    )


def read(model, **others):
    return np.asarray(model({"token_ids": IDS, "memory": MEMORY, **others}))


@pytest.mark.parametrize("encoding", [None, RoPE(), ALiBi()])
def test_memory_is_a_set_unless_cross_attention_has_an_encoding(encoding):
    model = reader(RoPE(), cross_encoding=encoding)
    logits, shuffled = read(model), MEMORY[:, ORDER]
    without = read(model, memory=shuffled)
    assert np.allclose(without, logits, atol=1e-3) == (encoding is None)
    if encoding is not None:
        found = read(model, memory=shuffled, memory_positions=ORDER)
        np.testing.assert_allclose(found, logits, atol=1e-5)


def test_packed_rows_need_the_documents_of_the_memory():
    with pytest.raises(ValueError, match="packed rows need both"):
        read(reader(), segment_ids=IDS)
