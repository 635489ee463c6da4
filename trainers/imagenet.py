"""Trains a classifier of images and tests it on larger ones.

    python -m trainers.imagenet --dataset=digits --encoding=RandomizedRoPE
    python -m trainers.imagenet --preset=paper --strategy=tpu --encoding=ALiBi

Images are sequences of gray values, row by row, each row ended by a delimiter:
22 x 22 pixels are 506 tokens. `--dataset=digits` comes with scikit-learn; the
first start with other data says where to get them.
"""

import functools

import tensorflow as tf
from keras import ops

from datasets import images
from datasets.curricula import Uniform
from datasets.images import batches, pixels
from datasets.tasks.batches import length_at
from keras_lengen.models import EncoderDecoder, TransformerEncoder
from trainers.errors import DataError, as_config_errors
from trainers.experiment import Experiment
from trainers.images.options import ImagesConfig
from trainers.images.problem import ClassificationProblem
from trainers.images.sizes import check_grid
from trainers.options.layers import model_arguments
from trainers.records.progress import Line

PRESETS = {
    "small": {"steps": 2000, "dropout": 0.0, "evaluate_every": 500},
    # On the confounding effects of length generalization with randomized
    # positional encodings, section 4.2.
    "paper": {
        "num_layers": 8,
        "num_heads": 8,
        "model_dim": 256,
        "normalization": "post",
        "batch_size": 32,
        "learning_rate": 1e-5,
        "steps": 1_000_000,
        "max_position": 4096,
        "train_size": "22x22",
        "test_sizes": "45x44",
        "steps_per_loop": 100,
        "checkpoint_every": 10_000,
        "evaluate_every": 50_000,
    },
}


class ImageProblem(ClassificationProblem):
    """The class of an image."""

    floor_labels = {"floor": "most frequent class"}
    length_name = "size"

    def __init__(self, config):
        super().__init__(config)
        self.title = config.dataset

    def prepare(self):
        self.note = images.describe_skipped(self.stores)
        self.keep_digest(self.stores.values())

    @functools.cached_property
    def stores(self):
        """Dict from the name of a split to its `PixelStore`."""
        config = self.config
        with as_config_errors(images.ImageError, becomes=DataError):
            return images.open_stores(
                images.IMAGES[config.dataset].open(config.data_dir),
                config.stored_sizes,
                config.cache_dir,
                classes=config.classes,
                invalid_images=config.invalid_images,
                report=Line().show,
            )

    def find_size(self, length):
        """Returns height and width at a length, a scalar tensor."""
        sizes = tf.constant(list(self.config.evaluated_sizes.values()))
        return sizes[tf.searchsorted(self.lengths, [length])[0]]

    def describe_length(self, length):
        return self.config.describe_size(length)

    def training_batches(self, **steps):
        return batches.training_dataset(
            self.stores["train"],
            size_at=lambda step: self.find_size(self.tokens_at(step)),
            batch_size=self.config.batch_size,
            seed=self.config.seed,
            delimiter=self.config.row_end,
            crop=self.config.random_crop,
            flip=self.config.random_flip,
            **steps,
        )

    def tokens_at(self, step):
        lengths = self.config.trained_lengths
        return length_at(self.config.seed, step, lengths, Uniform())

    def evaluation_examples(self, length):
        most = len(self.stores["test"])
        return min(self.config.evaluation_examples or most, most)

    def evaluation_batch(self, *, length, **which):
        store, size = self.stores["test"], self.find_size(length)
        return batches.evaluation_batch(
            store, size=size, delimiter=self.config.row_end, **which
        )

    def inputs(self, batch):
        inputs = {"token_ids": batch["token_ids"]}
        if self.config.architecture == "encoder_decoder":
            inputs["target_ids"] = ops.zeros_like(inputs["token_ids"][:, :1])
        return inputs

    def lay_out(self, values, length):
        return pixels.lay_out(values, self.config.evaluated_sizes[length])

    def floors(self):
        share = self.stores["test"].majority
        return {"floor": dict.fromkeys(self.lengths, share)}


def build_model(config):
    """Builds the model of a configuration."""
    arguments = model_arguments(config)
    check_grid(arguments["encoding"], config.evaluated_sizes)
    model = TransformerEncoder
    if config.architecture == "encoder_decoder":
        model = functools.partial(EncoderDecoder, target_vocabulary_size=1)
    return model(
        # Gray values, and perhaps the delimiter.
        vocabulary_size=max(256, config.row_end + 1),
        output_size=config.classes,
        normalization=config.normalization,
        **arguments,
    )


EXPERIMENT = Experiment(
    "imagenet", ImagesConfig, PRESETS, build_model, ImageProblem
)

if __name__ == "__main__":
    EXPERIMENT.run()
