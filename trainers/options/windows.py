"""Options of trainers whose data are windows of one long sequence."""

import dataclasses

from trainers.options.fields import TrainerConfig, option


@dataclasses.dataclass(frozen=True)
class WindowsConfig(TrainerConfig):
    """Options common to these trainers; every field is a flag."""

    data_dir: str = option(
        "data",
        "Directory of the data; of --dataset=files, a file or a directory.",
        is_path=True,
        changes_result=False,
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
    normalization: str = option(
        "pre",
        "Normalization before or after each residual branch.",
        choices=("pre", "post"),
        changes_program=True,
    )
    num_heads: int = option(
        4, "Number of attention heads.", most=1024, changes_program=True
    )
    model_dim: int = option(
        128, "Width of the model.", most=2**16, changes_program=True
    )
    batch_size: int = option(
        16, "Examples in a global batch.", most=2**20, changes_program=True
    )
    train_length: str = option("256", "Trained lengths.", changes_program=True)
    test_lengths: str = option(
        "512,1024", "Lengths to evaluate in addition to the trained ones."
    )
