"""The row of a text task: what its tests know of it."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A task with its wording, and another way to its answers.

    Attributes:
        golden: A problem, its prompt and its answer.
        solver: Maps a prompt with single spaces to its answer, which it finds
            in another way than the task; `None`: problems are read from files.
        steps: Steps of the scratchpad for the golden problem; `None`: the task
            has no scratchpad.
        positions: Pairs of a prompt with an answer, and the coupled positions
            of the prompt after its first word.
        typed: Maps what people may type to the prompt.
        described: A problem, words of an answer and its description, each.
    """

    golden: tuple
    solver: Callable | None
    steps: str | None = None
    wrong: tuple = ()
    positions: tuple = ()
    typed: dict = dataclasses.field(default_factory=dict)
    untyped: tuple = ()
    described: tuple = ()

    def solve(self, prompt):
        return self.solver(" ".join(prompt.split()))
