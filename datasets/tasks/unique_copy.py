"""Unique copy: a string of distinct symbols, once more.

An example of length 4:

    inputs   17 3 149 80
    targets  17 3 149 80
"""

import dataclasses

from datasets.tasks.base import RearrangedSymbols


@dataclasses.dataclass(frozen=True)
class UniqueCopy(RearrangedSymbols):
    """A string of distinct symbols, and its copy.

    Symbols are drawn without replacement. A string that is longer than the
    vocabulary cannot be unique: it consists of all symbols in one order, then
    in another, and so on.

    Lengths, budgets and score are those of `binary_majority`.

    Theory: a program of C-RASP with local relations solves it, so causal
    Transformers with positions are predicted to generalise. Published exact
    match at lengths 51 to 100 and 101 to 150: 1.00 and 0.99 with a table of
    positions, 0.18 and 0.00 without positions.

    Reference: Huang et al., 2025, section 5.
    https://arxiv.org/abs/2410.02140
    """

    input_vocabulary_size: int = 150
    output_vocabulary_size: int = 150
    level: str = "context_sensitive"
    random_accuracy: float = 1 / 150

    def rearrange(self, symbols):
        """Returns the string itself."""
        return symbols

    def position_only_accuracy(self, length):
        """Accuracy of any constant: symbols are uniform at every position."""
        del length
        return 1 / self.output_vocabulary_size
