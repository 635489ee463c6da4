"""Modular arithmetic with brackets: the value modulo 5 of an expression.

An example of length 10, which reads ((4 - 3) * -2) and is -2:

    inputs   8 8 4 6 3 9 7 6 2 9
    targets  3
"""

import dataclasses

from datasets.tasks.base import Task
from datasets.tasks.bracketed_expressions import (
    compute_value_probabilities,
    draw_expressions,
)


@dataclasses.dataclass(frozen=True)
class ModularArithmeticBrackets(Task):
    """Value modulo 5 of an expression of `+`, `-` and `*` in brackets.

    Tokens are the digits 0 to 4, then `+` 5, `-` 6, `*` 7, `(` 8 and `)` 9; 10
    is in the vocabulary but in no input. The module `bracketed_expressions`
    describes the expressions. Because of products, zero is more likely than
    the other values; its probability grows with the length.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 11
    output_vocabulary_size: int = 5
    level: str = "deterministic_context_free"
    random_accuracy: float = 0.2

    def draw(self, seed, batch_size, length):
        """Draws expressions with three operators."""
        return draw_expressions(seed, batch_size, length, 3)

    def floor_accuracy(self, length):
        """Probability of the most likely value at this length."""
        return float(compute_value_probabilities(length, 3).max())

    def position_only_accuracy(self, length):
        """The same as `floor_accuracy`."""
        return self.floor_accuracy(length)
