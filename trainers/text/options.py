"""Options of trainers whose data are windows of one long sequence."""

import dataclasses

from trainers.options.fields import LengthsConfig, normalization_option
from trainers.options.option import option, with_default


@dataclasses.dataclass(frozen=True)
class WindowsConfig(LengthsConfig):
    """Options common to these trainers; every field is a flag."""

    data_dir: str = option(
        "data",
        "Directory of the data; of --dataset=files, a file or a directory.",
        is_path=True,
        changes_result=False,
        names_data=True,
    )
    split: str = option(
        "test", "Split to evaluate.", choices=("validation", "test")
    )
    stride: int = option(
        0,
        "Distance between the windows of an evaluation. Below their length "
        "they slide, and each counts what the one before it does not reach; "
        "0: they do not overlap.",
        least=0,
        most=2**30,
    )
    evaluation_examples: int = option(
        256,
        "Windows of the longest length in an evaluation; at other lengths, as "
        "many as hold the same tokens; 0: the whole split.",
        least=0,
        most=2**20,
        changes_program=True,
    )
    normalization: str = normalization_option()
    num_heads: int = with_default(LengthsConfig, "num_heads", 4)
    model_dim: int = with_default(LengthsConfig, "model_dim", 128)
    batch_size: int = with_default(LengthsConfig, "batch_size", 16)
    train_length: str = with_default(LengthsConfig, "train_length", "256")
    test_lengths: str = with_default(LengthsConfig, "test_lengths", "512,1024")
