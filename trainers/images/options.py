"""Options of trainers whose data are images."""

import dataclasses

from datasets.images import IMAGES, INVALID_IMAGES, ImageError
from datasets.images.pixels import DELIMITERS
from trainers.errors import ConfigError, DataError, as_config_errors
from trainers.images.sizes import MAX_SIZES, merge_sizes, parse_sizes
from trainers.options.fields import TrainerConfig, normalization_option
from trainers.options.option import option, with_default


@dataclasses.dataclass(frozen=True)
class ImagesConfig(TrainerConfig):
    """Options common to these trainers; every field is a flag."""

    dataset: str = option(
        "imagenet2012", "Images.", choices=tuple(IMAGES), names_data=True
    )
    data_dir: str = option(
        "",
        "Directory of the data (empty: that of TensorFlow Datasets).",
        is_path=True,
        changes_result=False,
        names_data=True,
    )
    cache_dir: str = option(
        "data/images",
        "Directory for decoded images.",
        is_path=True,
        changes_result=False,
    )
    invalid_images: str = option(
        "error",
        "Whether images that cannot be decoded and classes without images are "
        "an error or skipped.",
        choices=INVALID_IMAGES,
    )
    num_classes: int = option(
        0,
        "Number of classes; 0: that of the data set, 1000 for tfrecords.",
        least=0,
        most=2**20,
        changes_program=True,
    )
    train_size: str = option(
        "8x8", "Height and width of training images.", changes_program=True
    )
    test_sizes: str = option(
        "10x10,12x12,16x16,20x20,24x24",
        "Sizes to evaluate in addition to the trained one.",
    )
    delimiter: str = option(
        "black",
        "Token at the end of a row: a black pixel, or a separate token.",
        choices=tuple(DELIMITERS),
        changes_program=True,
    )
    random_crop: int = option(
        0,
        "Number of rows and columns that random cropping removes from a "
        "training image.",
        least=0,
        most=1024,
    )
    random_flip: bool = option(
        False, "Flip each training image horizontally with probability 1/2."
    )
    architecture: str = option(
        "encoder_decoder",
        "Model: an encoder with a decoder of one token that attends to the "
        "encoded image, or only an encoder, whose outputs are averaged.",
        choices=("encoder_decoder", "encoder"),
        changes_program=True,
    )
    normalization: str = normalization_option()
    num_layers: int = with_default(TrainerConfig, "num_layers", 2)
    num_heads: int = with_default(TrainerConfig, "num_heads", 4)
    batch_size: int = with_default(TrainerConfig, "batch_size", 64)
    buckets: int = with_default(TrainerConfig, "buckets", MAX_SIZES)
    evaluation_examples: int = option(
        0,
        "Images of each size in an evaluation; 0: the whole split.",
        least=0,
        most=2**31 - 1,
        changes_program=True,
    )

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        super().validate()
        if len(self.trained_sizes) > self.buckets:
            raise ConfigError(
                f"--buckets={self.buckets} would pad images of "
                f"{len(self.trained_sizes)} sizes: raise it."
            )

    @property
    def unused(self):
        """Dict from flags that have no effect beside the others to reasons."""
        if self.dataset not in ("digits", "noise"):
            return super().unused
        reason = f"with --dataset={self.dataset}, which reads no files"
        return {**super().unused, "data_dir": reason}

    @property
    def classes(self):
        """Number of classes that the model tells apart.

        Raises:
            ConfigError: If only the data can tell, and they are not there.
        """
        if self.num_classes:
            return self.num_classes
        with as_config_errors(ImageError, becomes=DataError):
            return IMAGES[self.dataset].count_classes(self.data_dir)

    @property
    def row_end(self):
        """Token at the end of a row."""
        return DELIMITERS[self.delimiter]

    @property
    def trained_sizes(self):
        """Dict from numbers of tokens to pairs of height and width."""
        return parse_sizes("--train_size", self.train_size)

    @property
    def evaluated_sizes(self):
        """The same, with sizes that are only tested."""
        return merge_sizes(
            self.trained_sizes, parse_sizes("--test_sizes", self.test_sizes)
        )

    def describe_size(self, tokens):
        """Returns height and width as in `8x8`, or unknown `tokens`."""
        return "x".join(map(str, self.evaluated_sizes.get(tokens, [tokens])))

    @property
    def stored_sizes(self):
        """Dict from splits to the heights and widths that images need."""
        more = self.random_crop
        trained = self.trained_sizes.values()
        return {
            "train": [
                (height + more, width + more) for height, width in trained
            ],
            "test": list(self.evaluated_sizes.values()),
        }

    @property
    def trained_lengths(self):
        return tuple(self.trained_sizes)

    @property
    def evaluated_lengths(self):
        return tuple(self.evaluated_sizes)
