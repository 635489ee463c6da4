import numpy as np
import pytest

from keras_lengen.layers import NTKRoPE, RoPE
from tests.keras_lengen.layers.encodings.table import random_inputs
from tests.keras_lengen.models.small import encoder, token_ids

QUERY = random_inputs("rotation", tokens=12)[0]


def plain(base):
    return np.asarray(RoPE(max_wavelength=base)(QUERY))


def test_bases_of_a_head_of_64():
    query = np.random.default_rng(0).normal(size=(1, 9, 1, 64))
    for factor, base in ((2, 20452.23), (4, 41829.37)):
        np.testing.assert_allclose(
            NTKRoPE(scaling_factor=factor)(query),
            RoPE(max_wavelength=base)(query),
            atol=1e-5,
        )


def test_the_fastest_pair_is_kept_and_the_slowest_slowed_by_the_factor():
    query = np.zeros((1, 4, 1, 8), "float32")
    query[..., [0, 6]] = 1
    turned = np.asarray(NTKRoPE(scaling_factor=3)(query))[0, :, 0]
    np.testing.assert_allclose(
        np.arctan2(turned[:, 1], turned[:, 0]),
        (np.arange(4) + np.pi) % (2 * np.pi) - np.pi,
        atol=1e-6,
    )
    np.testing.assert_allclose(
        np.arctan2(turned[:, 7], turned[:, 6]),
        np.arange(4) * 0.001 / 3,
        rtol=1e-4,
    )


@pytest.mark.parametrize(
    ("factor", "length", "scale"),
    [
        (1.0, 6, 1),
        (1.0, 8, 1),
        (1.0, 24, 3),
        (2.0, 24, 2 * 3 - 1),
        (2.0, 4, 1),
    ],
)
def test_the_base_follows_the_length(factor, length, scale):
    encoding = NTKRoPE(scaling_factor=factor, original_length=8)
    expected = plain(10000 * scale ** (8 / 6))
    turned = encoding(QUERY, length=length)
    np.testing.assert_allclose(turned, expected, atol=1e-5)
    each = encoding(QUERY, length=np.array([length, 8], "int32"))
    np.testing.assert_allclose(each[0], expected[0], atol=1e-5)
    np.testing.assert_allclose(each[1], plain(10000)[1], atol=1e-5)
    # And falls again: nothing is remembered.
    np.testing.assert_allclose(
        encoding(QUERY, length=8), plain(10000), atol=1e-5
    )


def test_without_a_length_that_of_the_keys_counts():
    encoding = NTKRoPE(original_length=4)
    np.testing.assert_allclose(
        encoding(QUERY), encoding(QUERY, length=12), atol=1e-5
    )


def test_padding_does_not_count():
    model = encoder(NTKRoPE(original_length=2))
    ids = token_ids()
    alone = np.asarray(model(ids[:1, :4]))
    padded = np.asarray(
        model({"token_ids": ids, "lengths": np.array([4, 6], "int32")})
    )
    np.testing.assert_allclose(padded[:1, :4], alone, atol=1e-5)
    whole = np.asarray(model(ids))
    assert np.abs(whole[0, :4] - alone[0]).max() > 1e-4
    np.testing.assert_allclose(padded[1], whole[1], atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scaling_factor": 0.5}, "scaling_factor .* got 0.5"),
        ({"original_length": 0}, "original_length .* got 0"),
        ({"rotary_fraction": 0.25}, "NTKRoPE needs .* 4 .* 2 of a head"),
    ],
)
def test_wrong_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        NTKRoPE(**arguments)(QUERY)
