import numpy as np
import pytest
from PIL import Image

from docs import pictures
from docs.examples import CLASSES


def test_all_but_plain_attention_have_a_picture():
    without = [name for name in CLASSES if pictures.find_picture(name) is None]
    assert without == ["MultiHeadAttention"]


@pytest.mark.parametrize(
    "name",
    [
        "AxialEncoding",
        "GeometricAttention",
        "CoupledPositions",
        "GridPositions",
        "T5Bias",
        "WarpedRoPE",
    ],
)
def test_a_picture_is_drawn_and_small(name, tmp_path):
    path = tmp_path / "picture.png"
    pictures.draw(name, path)
    image = np.asarray(Image.open(path).convert("L"))
    assert image.shape == (288, 720)
    assert image.std() > 5
    assert path.stat().st_size < 40_000
