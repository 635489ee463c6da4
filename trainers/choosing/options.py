"""Options of `python -m trainers.choose`, and its candidates."""

import dataclasses
import re

from trainers.errors import ConfigError
from trainers.options.choices import described
from trainers.options.option import check_options, option, select_options
from trainers.sweeps.options import SweepConfig

CANDIDATES = {
    "encoder": (
        "RoPE",
        "RandomizedRoPE",
        "RandomizedSinusoidalEncoding",
        "RandomizedRelativeEncoding",
        "ALiBi",
        "LogKERPLE",
    ),
    "decoder": ("RoPE", "NoPE", "RandomizedRoPE", "ALiBi", "LogKERPLE", "FIRE"),
}
"""Candidates by kind of model: `RoPE`, which most models have, and the methods
that were best on some kind of task."""

WITHOUT = ("encoding", "sampler", "seed", "initialize_from", "workdir")
"""Flags of trainers that this command sets itself."""

OF_SWEEPS = (
    *("engine", "jobs", "address", "cpus", "gpus", "tpus"),
    *("retries", "retry_failed"),
)
"""Flags of `trainers.sweep` that this command has, too."""


@dataclasses.dataclass(frozen=True)
class ChooseConfig(select_options(SweepConfig, *OF_SWEEPS)):
    """Flags of this command beside those of the trainer."""

    candidates: str = option(
        "auto",
        "Encodings to compare, by name or call, separated by commas; "
        "SAMPLER+ENCODING is an encoding with a sampler. auto: of a decoder, "
        f"{', '.join(CANDIDATES['decoder'])}; of an encoder, "
        f"{', '.join(CANDIDATES['encoder'])}.",
    )
    seeds: int = option(
        2, "Number of seeds that each candidate is trained with.", most=1000
    )
    most_seeds: int = option(
        5,
        "Largest number of seeds: as long as no difference is seen between "
        "the best candidates, each of them is trained with another seed.",
        most=1000,
    )
    root: str = option(
        "",
        "Directory of the runs and the report (empty: runs/choose/TITLE).",
        is_path=True,
    )

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        check_options(self)
        if self.most_seeds < self.seeds:
            raise ConfigError(
                f"--most_seeds={self.most_seeds} is below "
                f"--seeds={self.seeds}: raise it, or lower --seeds."
            )
        if self.candidates != "auto":
            parse_candidates(self.candidates)


def make_config_class(trainer):
    """Returns a `ChooseConfig` with the flags of a trainer, too.

    Args:
        trainer: Class of configurations, a `TrainerConfig`.
    """
    own = [field.name for field in dataclasses.fields(ChooseConfig)]
    names = [
        field.name
        for field in dataclasses.fields(trainer)
        if field.name not in (*own, *WITHOUT)
    ]
    return dataclasses.make_dataclass(
        "ChooseConfig",
        [],
        bases=(ChooseConfig, select_options(trainer, *names)),
        # The module whose docstring --help shows.
        namespace={"__module__": "trainers.choose"},
        frozen=True,
    )


def parse_candidates(text):
    """Parses candidates.

    Args:
        text: str, as `RoPE,SkippedPositions+RoPE,ALiBi(asymmetry=0)`.

    Returns:
        Dict from the texts of candidates to the flags that they set.

    Raises:
        ConfigError: If there are fewer than two, or one has another form.

    >>> parse_candidates("NoPE, SkippedPositions+RoPE")
    {'NoPE': {'encoding': 'NoPE'},
     'SkippedPositions+RoPE': {'encoding': 'RoPE',
                               'sampler': 'SkippedPositions'}}
    """
    # A comma or a sign within parentheses belongs to a call.
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)]
    found = {}
    for part in parts:
        *sampler, encoding = re.split(r"\+(?![^(]*\))", part)
        if not encoding or len(sampler) > 1:
            raise ConfigError(
                "--candidates takes encodings separated by commas, as "
                f"RoPE,ALiBi,SkippedPositions+RoPE; got {described(text)}."
            )
        found[part] = {"encoding": encoding.strip()}
        if sampler:
            found[part]["sampler"] = sampler[0].strip()
    if len(found) < 2:
        raise ConfigError(
            "--candidates takes at least two different encodings; got "
            f"{described(text)}."
        )
    return found
