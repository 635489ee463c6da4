"""Options of `python -m trainers.tpu_compile`."""

import dataclasses

import keras

from datasets.tasks import TASKS
from datasets.text_tasks import TEXT_TASKS
from trainers.answers.options import AnswersConfig
from trainers.errors import ConfigError
from trainers.images.options import ImagesConfig
from trainers.options.choices import check_choice
from trainers.options.option import (
    check_options,
    check_unused,
    option,
    options,
    select_options,
)
from trainers.tpu import table as tpu_table
from trainers.tpu.compiler import Topology
from trainers.tpu.programs import MODES, list_trainers


def _take(config_class, *names, **defaults):
    """Returns options of trainers, empty or 0 unless `defaults` says more."""
    known = options(config_class)
    empty = {name: type(known[name].default)() for name in names}
    return select_options(config_class, *names, **{**empty, **defaults})


@dataclasses.dataclass(frozen=True)
class TpuCompileConfig(
    _take(
        AnswersConfig,
        *("encoding", "sampler", "attention", "score_factor", "loops"),
        *(
            "max_position",
            "chunk_size",
            "fused",
            "share_positions",
            "precision",
        ),
        "batch_size",
        *("gradient_accumulation_steps", "train_length", "test_lengths"),
        encoding="RandomizedRoPE",
        precision="mixed_bfloat16",
    ),
    _take(ImagesConfig, "data_dir", "train_size", "test_sizes"),
):
    """Flags of this command.

    A flag of a trainer that is empty or 0 keeps the trainer's own default.
    """

    preset: str = option("small", "Preset of the trainer.")
    backend: str = option(
        keras.backend.backend(),
        "Backend of the programs; by default that of Keras.",
        choices=("tensorflow", "jax"),
    )
    topology: str = option(
        "v5e:2x2", "Slice to compile for, such as v6e:2x2 or v4:2x2x1."
    )
    trainer: str = option(
        "algorithmic", f"Trainer to compile: {', '.join(list_trainers())}."
    )
    mode: str = option(
        "all", "Kind of programs to compile.", choices=("all", *MODES)
    )
    lengths: str = option(
        "longest",
        "Padded lengths to compile.",
        choices=("longest", "all"),
    )
    task: str = option(
        "",
        "Task, for a trainer with several tasks.",
        choices={**TASKS, **TEXT_TASKS},
    )
    dataset: str = option("", "Data set, for a trainer with several data sets.")
    table: bool = option(
        False,
        f"Update {tpu_table.TABLE}, with the programs of both backends.",
    )
    jobs: int = option(
        1,
        "Number of programs to compile at a time; large ones need 10 GB each.",
    )
    force: bool = option(
        False, "Also compile programs that have results in the file."
    )
    results: str = option(
        "",
        f"File for the results; by default {tpu_table.OWN}, or with "
        f"--table {tpu_table.TABLE}.",
        is_path=True,
    )

    def validate(self):
        """Raises `ConfigError` for the first invalid value."""
        Topology(self.topology)
        check_choice("--trainer", self.trainer, tuple(list_trainers()))
        check_options(self)
        if self.table:
            names = options(self).keys() - {"table", "jobs", "force", "results"}
            reason = "with --table, which compiles the committed table"
            check_unused(self, sorted(names), reason)
        if self.results.endswith(".md"):
            raise ConfigError(
                f"--results={self.results} is the name of the report beside "
                "the results: choose a name such as tpu_compile.jsonl."
            )


PRESETS = {
    name: {} for known in list_trainers().values() for name in known.presets
}
