import numpy as np
from sklearn.datasets import load_digits

from datasets.images import IMAGES
from datasets.images.digits import open_digits


def test_every_digit_is_in_one_split():
    found = {
        split: [(item.label, item.content.tobytes()) for item in source.read()]
        for split, source in open_digits().items()
    }
    assert len(found["train"]) == 1437 and len(found["test"]) == 360
    digits = load_digits()
    wanted = {
        (int(label), np.round(image * 255 / 16).astype(np.uint8).tobytes())
        for label, image in zip(digits.target, digits.images, strict=True)
    }
    assert {*found["train"], *found["test"]} == wanted
    for items in found.values():
        counts = np.bincount([label for label, _ in items])
        assert len(counts) == 10 and counts.min() > 0.7 * counts.mean()


def test_noise_is_the_same_every_time():
    for source in IMAGES["noise"].open("").values():
        first, again = (
            [(item.label, item.content.tobytes()) for item in source.read()]
            for _ in range(2)
        )
        assert first == again and len(first) == source.count
