"""Images of a split as sequences of tokens, with their classes."""

import tensorflow as tf

from datasets.images.pixels import BLACK, to_tokens
from datasets.indexed import example_numbers, indexed_dataset, shuffled_index
from datasets.seeds import fold_in


def training_dataset(
    store,
    *,
    size_at,
    batch_size,
    seed,
    padded_length,
    delimiter=BLACK,
    crop=0,
    flip=False,
    **steps,
):
    """Returns batches of images, one for each replica.

    Every epoch has each image once, in another random order.

    Args:
        store: `PixelStore` of the training split, with the sizes that
            `size_at` returns, each with `crop` more rows and columns.
        size_at: Function from a step to the size of its images, int32 `(2,)`:
            height and width.
        batch_size: int. Number of images in a global batch.
        seed: int. Seed of the order, the crops and the flips.
        padded_length: int. Number of tokens that images are padded to.
        delimiter: int. Token at the end of a row.
        crop: int. Number of rows, and of columns, that are cut off an image,
            at random on either side.
        flip: bool. Whether every other image, at random, is mirrored.
        **steps: `first_step`, `last_step` and `context` of
            `indexed_dataset`.

    Returns:
        `tf.data.Dataset` of batches in the format of `assemble`.
    """

    def draw(step, number, size):
        places = example_numbers(step, number, size, batch_size)
        indices = shuffled_index(seed, places, len(store))
        height_width = size_at(step)
        images, labels = store.read(indices, height_width + crop)
        key = fold_in(seed, step, number)
        if crop:
            images = _crop(images, height_width, crop, key)
        if flip:
            images = _flip(images, key)
        return assemble(images, labels, padded_length, delimiter)

    return indexed_dataset(draw, batch_size=batch_size, **steps)


def evaluation_batch(
    store, *, index, batch_size, size, padded_length, delimiter=BLACK
):
    """Returns a batch of images; every split has them in one random order.

    Args:
        store: `PixelStore` of the split.
        index: int or scalar int tensor, at least 0. Index of the batch.
        batch_size: int or scalar int tensor. Number of images.
        size: int32 tensor `(2,)`. Height and width of the images.
        padded_length: int or scalar int tensor. Number of tokens that images
            are padded to.
        delimiter: int. Token at the end of a row.

    Returns:
        Dict in the format of `assemble`. After the last image, the first one
        follows again.
    """
    numbers = tf.cast(index * batch_size + tf.range(batch_size), tf.int64)
    # The order of a data set is often that of its classes.
    indices = shuffled_index(0, numbers % len(store), len(store))
    images, labels = store.read(indices, size)
    return assemble(images, labels, padded_length, delimiter)


def assemble(images, labels, padded_length, delimiter=BLACK):
    """Arranges images as padded sequences.

    Args:
        images: int32 tensor `(B, H, W)`.
        labels: int32 tensor `(B,)`.
        padded_length: int or scalar int tensor P, at least `H * (W + 1)`.
        delimiter: int. Token at the end of a row.

    Returns:
        A dict: `"token_ids"`, int32 `(B, P)`, and `"targets"`, int32 `(B,)`.
    """
    tokens = to_tokens(images, delimiter)
    tokens = tf.pad(tokens, [[0, 0], [0, padded_length - tf.shape(tokens)[1]]])
    shape = (labels.shape[0], tf.get_static_value(padded_length))
    return {"token_ids": tf.ensure_shape(tokens, shape), "targets": labels}


def _crop(images, size, crop, key):
    """Cuts a window of a size out of every image, at a random place."""
    starts = tf.random.stateless_uniform(
        (images.shape[0], 2),
        tf.random.split(key, alg="philox")[0],
        0,
        crop + 1,
        tf.int32,
        alg="philox",
    )
    rows = starts[:, :1] + tf.range(size[0])
    columns = starts[:, 1:] + tf.range(size[1])
    images = tf.gather(images, rows, axis=1, batch_dims=1)
    return tf.gather(images, columns, axis=2, batch_dims=1)


def _flip(images, key):
    mirrored = tf.random.stateless_uniform(
        (images.shape[0], 1, 1),
        tf.random.split(key, alg="philox")[1],
        alg="philox",
    )
    return tf.where(mirrored < 0.5, images[:, :, ::-1], images)
