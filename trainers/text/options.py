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
        "Distance between evaluation windows. If it is smaller than a window, "
        "windows overlap, and each one only scores the tokens that the "
        "previous one does not contain; 0: no overlap.",
        least=0,
        most=2**30,
    )
    evaluation_examples: int = option(
        256,
        "Number of windows of the longest length in an evaluation; shorter "
        "windows have the same total number of tokens; 0: the whole split.",
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
