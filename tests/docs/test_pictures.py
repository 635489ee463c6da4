import numpy as np
import pytest
from PIL import Image

from docs import pictures
from docs.examples import CLASSES


@pytest.mark.parametrize("name", CLASSES)
def test_all_but_plain_attention_have_a_picture(name):
    described = pictures.find_picture(name)
    assert (described is None) == (name == "MultiHeadAttention")


@pytest.mark.parametrize(
    "name",
    [
        "AxialEncoding",
        "GeometricAttention",
        "StickBreakingAttention",
        "CoupledPositions",
        "NoPE",
        "GridPositions",
        "RandomizedPositions",
        "PowerKERPLE",
        "T5Bias",
        "RandomizedRelativeEncoding",
        "WarpedRoPE",
        "SHAPE",
    ],
)
def test_a_picture_is_drawn_and_small(name, tmp_path):
    path = tmp_path / "picture.png"
    pictures.draw(name, path)
    image = np.asarray(Image.open(path).convert("L"))
    assert image.shape == (288, 720)
    assert image.std() > 5
    assert path.stat().st_size < 40_000


def test_the_products_of_rope_are_cosines():
    encoding = pictures.build(pictures.make("RoPE"), heads=1, width=64)
    products = pictures._compute_products(encoding)
    distances = np.arange(-pictures.LONG, 1)
    rates = 10000.0 ** (-np.arange(32) / 32)
    np.testing.assert_allclose(
        products, np.cos(np.outer(rates, distances)), atol=1e-3
    )
