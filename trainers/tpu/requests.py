"""Programs that the flags of `trainers.tpu_compile` ask for."""

import dataclasses

from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.options.layers import with_max_position
from trainers.options.option import options
from trainers.tpu import table as tpu_table
from trainers.tpu.options import PRESETS, TpuCompileConfig
from trainers.tpu.programs import MODES, find_lengths, list_trainers


@dataclasses.dataclass(frozen=True)
class Program:
    """A program to compile.

    Attributes:
        backend: `"tensorflow"` or `"jax"`.
        topology: str. Name of the slice.
        trainer: str. Name of the trainer.
        mode: `"train"` or `"evaluate"`.
        tokens: int. Padded length.
        config: Configuration of the trainer.
        experiment: `Experiment` of the trainer.
    """

    backend: str
    topology: str
    trainer: str
    mode: str
    tokens: int
    config: object
    experiment: object = dataclasses.field(compare=False)

    @property
    def key(self):
        """Dict of everything that determines the program, except versions."""
        values = dataclasses.asdict(self.config)
        return {
            "backend": self.backend,
            "topology": self.topology,
            "trainer": self.trainer,
            "mode": self.mode,
            "tokens": self.tokens,
            # It also sets options that are no flags of this command.
            "preset": self.config.preset,
            **{
                name: values[name]
                for name in (
                    *tpu_table.list_program_fields(),
                    *tpu_table.DATA,
                )
                if name in values
            },
        }


def list_programs(config):
    """Lists the `Program`s that a configuration asks for.

    Args:
        config: `TpuCompileConfig`.

    Raises:
        ConfigError: If a flag is invalid or does not belong to the trainer.
    """
    trainer = list_trainers()[config.trainer]
    known = {
        field.name
        for some in list_trainers().values()
        for field in dataclasses.fields(some.config)
    }
    given = {
        name: value
        for name, value in dataclasses.asdict(config).items()
        if name in known and value
    }
    for name in given.keys() - options(trainer.config).keys():
        raise ConfigError(f"--{name} is not a flag of {config.trainer}.")
    given["strategy"] = "tpu"
    of_trainer = with_max_position(
        resolve(trainer.config, trainer.presets, given)
    )
    first = -1 if config.lengths == "longest" else 0
    return [
        Program(
            config.backend,
            config.topology,
            config.trainer,
            mode,
            tokens,
            of_trainer,
            trainer,
        )
        for mode in MODES
        if config.mode in ("all", mode)
        for tokens in find_lengths(trainer, of_trainer, mode)[first:]
    ]


def list_table():
    """Lists the `Program`s of the committed table."""
    return [
        program
        for flags in tpu_table.list_flags()
        for program in list_programs(resolve(TpuCompileConfig, PRESETS, flags))
    ]
