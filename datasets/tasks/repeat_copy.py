"""Repeat copy: a string with repetitions, once more.

An example of length 5:

    inputs   0 1 1 0 1
    targets  0 1 1 0 1
"""

import dataclasses

from datasets.tasks.base import RearrangedBits


@dataclasses.dataclass(frozen=True)
class RepeatCopy(RearrangedBits):
    """A string of uniform bits, and its copy.

    `duplicate_string` is another task: its answer has the string twice.

    Lengths, budgets and score are those of `binary_majority`.

    Theory: no program of C-RASP copies strings in which symbols repeat, so
    Transformers are predicted to fail. Published exact match at lengths 51 to
    100 and 101 to 150: 0.26 and 0.00 with a table of positions.

    Reference: Huang et al., 2025, section 5.
    https://arxiv.org/abs/2410.02140
    """

    input_vocabulary_size: int = 2
    output_vocabulary_size: int = 2
    level: str = "context_sensitive"
    random_accuracy: float = 0.5

    def output_length(self, length):
        """One output for each input token."""
        return length

    def rearrange(self, bits):
        """Returns the string itself."""
        return bits
