"""Options of `python -m trainers.analyze`."""

import dataclasses

from trainers.options.fields import RunConfig
from trainers.options.lengths import parse_lengths
from trainers.options.option import option


@dataclasses.dataclass(frozen=True)
class AnalyzeConfig(RunConfig):
    """Flags of this command."""

    examples: int = option(4, "Number of sequences.", most=64)
    length: int = option(
        0,
        "Length of the sequences of attention.json, one that the run "
        "evaluates; 0: the longest trained.",
        least=0,
    )
    matrices: str = option(
        "",
        "Evaluated lengths at which to plot attention matrices, in addition to "
        "the longest trained one (empty: no matrices).",
    )
    activations: str = option(
        "",
        "Evaluated lengths at which to plot activations, in addition to the "
        "longest trained one (empty: no activations).",
    )

    def validate(self):
        """Raises `ConfigError` for the first invalid value."""
        super().validate()
        for name in ("matrices", "activations"):
            self.parse(name)

    def parse(self, name):
        """Returns the lengths of a flag, a tuple of int."""
        text = getattr(self, name)
        return parse_lengths(f"--{name}", text) if text else ()
