"""Continues the training of a model, with other positions.

    python -m trainers.finetune RUN --encoding=RandomizedRoPE --steps=500
    python -m trainers.finetune RUN --sampler=SkippedPositions --encoding=YaRN
    python -m trainers.finetune RUN --encoding=NoPE --score_factor=head
    python -m trainers.finetune RUN/checkpoints/best-1200.npz --encoding=ALiBi

RUN is the working directory of a run, or one of its checkpoints. The new run
begins with these weights and a new optimizer, and counts its steps from 0. Its
flags are those of the trainer of RUN, and their defaults are the values of RUN:
`python -m trainers.finetune RUN --help` shows them. Without RUN, --help shows
the flags that all trainers have.
"""

import dataclasses
import pathlib
import sys

from trainers.errors import ConfigError
from trainers.options.command import errors_as_statuses, run
from trainers.options.fields import CheckpointConfig, TrainerConfig
from trainers.options.option import option, options, select_options
from trainers.options.own_classes import name_of
from trainers.options.parsing import find_operand, find_request
from trainers.records.opened_run import list_booleans, open_run
from trainers.records.workdir import read_config

WITHOUT = ("preset", "initialize_from")
"""Flags of trainers that this command does not have: RUN takes their place."""


@dataclasses.dataclass(frozen=True)
class FinetuneConfig(CheckpointConfig):
    """Flags of this command beside those of the run's trainer."""

    workdir: str = option(
        "",
        "Directory for results; by default below runs/, named after the "
        "positions of both runs.",
        is_path=True,
        changes_result=False,
    )


def make_config_class(defaults):
    """Returns a `FinetuneConfig` with the flags of a trainer, too.

    Args:
        defaults: Configuration of the trainer, whose values are the defaults.
    """
    values = {
        name: value
        for name, value in vars(defaults).items()
        if name not in options(FinetuneConfig) and name not in WITHOUT
    }
    return dataclasses.make_dataclass(
        "FinetuneConfig",
        [],
        bases=(FinetuneConfig, select_options(defaults, *values, **values)),
        # The module whose docstring --help shows.
        namespace={"__module__": __name__},
        frozen=True,
    )


def main(config, text):
    """Trains a model that begins with the weights of a run."""
    opened = open_run(text, config.checkpoint)
    opened.retry(lambda run: train(config, text, run))


def train(config, text, opened):
    """Does the same with an opened run."""
    flags = dataclasses.asdict(config)
    del flags["checkpoint"]
    new = dataclasses.replace(opened.config, **flags)
    # What only the run needed.
    inherited = {
        name: options(new)[name].default
        for name in new.unused
        if getattr(new, name) == getattr(opened.config, name)
    }
    new = dataclasses.replace(new, **inherited)
    title = opened.experiment.make_problem(new).title
    name = f"{name_run(new)}-from-{name_run(opened.config)}"
    workdir = pathlib.Path(new.workdir or pathlib.Path("runs", title, name))
    new = dataclasses.replace(
        new,
        workdir=str(workdir),
        initialize_from=find_source(opened, text, workdir),
    )
    new.validate()
    opened.experiment.main(new)


def name_run(config):
    """Returns a name of the positions and the scores of a run."""
    calls = config.sampler, config.encoding or "demonstration"
    names = [name_of(call) for call in calls]
    if config.score_factor != "none":
        names.append(config.score_factor)
    return "-".join(filter(None, names))


def find_source(opened, text, workdir):
    """Returns the path of the checkpoint that a run begins or began with.

    Args:
        opened: The `OpenedRun`.
        text: str. Its path on the command line.
        workdir: `pathlib.Path` of the working directory.
    """
    given = pathlib.Path(text).expanduser()
    if given.suffix == ".npz":
        return str(given)
    source = given / "checkpoints" / opened.checkpoint.name
    # RUN may have trained on since the same command was started first.
    record = read_config(workdir) or {"config": {}}
    began = pathlib.Path(record["config"].get("initialize_from", ""))
    kind = source.name.partition("-")[0]
    is_same = began.parent == source.parent and began.name.startswith(kind)
    return str(began if is_same else source)


def run_command():
    """Runs this command with the flags of the command line."""
    with errors_as_statuses():
        text = find_operand(sys.argv, list_booleans())
        if text is not None:
            defaults = open_run(text).config
        elif find_request(sys.argv) is not None:
            defaults = TrainerConfig()
        else:
            raise ConfigError("RUN is missing: see --help.")
    run(make_config_class(defaults), {}, main, operands="RUN")


if __name__ == "__main__":
    run_command()
