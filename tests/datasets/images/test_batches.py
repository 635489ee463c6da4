import numpy as np
import pytest
import tensorflow as tf

from datasets.images.batches import evaluation_batch, training_dataset
from datasets.images.pixels import lay_out, to_tokens
from datasets.images.store import PixelStore

SIZE = (3, 2)


@pytest.fixture
def store():
    """Twelve images, whose pixels tell the image, the row and the column."""
    number, row, column = np.indices((12, 5, 4))
    images = (16 * number + 4 * row + column).astype(np.uint8)
    labels = np.arange(12, dtype=np.int32) % 5
    return PixelStore({SIZE: images[:, :3, :2], (5, 4): images}, labels)


def draw(store, first=0, last=3, **changes):
    dataset = training_dataset(
        store,
        size_at=lambda step: tf.constant(SIZE),
        first_step=first,
        last_step=last,
        batch_size=4,
        seed=0,
        padded_length=9,
        **changes,
    )
    batches = list(dataset.as_numpy_iterator())
    tokens = np.concatenate([batch["token_ids"] for batch in batches])
    return tokens, np.concatenate([batch["targets"] for batch in batches])


def test_an_epoch_has_every_image_once(store):
    orders = []
    for epoch in range(2):
        tokens, targets = draw(store, 3 * epoch, 3 * epoch + 3)
        numbers = tokens[:, 0] // 16
        assert sorted(numbers) == list(range(12))
        np.testing.assert_array_equal(targets, store.labels[numbers])
        # Rows of two pixels, each with a delimiter.
        assert not tokens[:, 2::3].any()
        offsets = np.delete(tokens - 16 * numbers[:, None], [2, 5, 8], axis=1)
        assert (offsets == [0, 1, 4, 5, 8, 9]).all()
        orders.append(numbers.tolist())
    assert orders[0] != orders[1]
    np.testing.assert_array_equal(draw(store, 1, 3)[0], draw(store)[0][4:])


def test_crops_at_random_places(store):
    tokens, _ = draw(store, last=30, crop=2, delimiter=256)
    corners = tokens[:, 0] % 16
    found = {(corner // 4, corner % 4) for corner in corners.tolist()}
    assert found == {(row, column) for row in range(3) for column in range(3)}
    np.testing.assert_array_equal(tokens[:, 1], tokens[:, 0] + 1)
    np.testing.assert_array_equal(tokens[:, 3], tokens[:, 0] + 4)
    assert (tokens[:, 2::3] == 256).all()


def test_every_other_image_is_mirrored(store):
    tokens, _ = draw(store, last=60, flip=True)
    mirrored = tokens[:, 0] % 4 == 1
    assert 0.35 < mirrored.mean() < 0.65
    steps = tokens[:, 1] - tokens[:, 0]
    np.testing.assert_array_equal(steps, np.where(mirrored, -1, 1))


def test_evaluation_reads_every_image_once(store):
    numbers = []
    for index in range(3):
        batch = evaluation_batch(
            store,
            index=tf.constant(index),
            batch_size=4,
            size=tf.constant((5, 4)),
            padded_length=26,
        )
        tokens = batch["token_ids"].numpy()
        assert tokens.shape == (4, 26) and not tokens[:, 25].any()
        numbers += (tokens[:, 0] // 16).tolist()
        labels = store.labels[numbers[-4:]]
        np.testing.assert_array_equal(batch["targets"], labels)
    assert sorted(numbers) == list(range(12)) != numbers


def test_images_are_laid_out_without_their_padding():
    images = np.random.default_rng(0).integers(1, 256, (3, 45, 44))
    padded = np.pad(to_tokens(images), [(0, 0), (0, 5)])
    np.testing.assert_array_equal(lay_out(padded, (45, 44)), images)
