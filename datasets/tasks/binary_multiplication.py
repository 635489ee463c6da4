"""Binary multiplication: the product of two numbers, lowest bit first.

An example of length 9, which multiplies 4 and 22:

    inputs   0 0 1 2 0 1 1 0 1
    targets  0 0 0 1 1 0 1 2 0
"""

import dataclasses

from datasets.tasks.binary_numbers import multiply
from datasets.tasks.binary_operation import BinaryOperation


@dataclasses.dataclass(frozen=True)
class BinaryMultiplication(BinaryOperation):
    """The product of two binary numbers, a termination token, and zeros.

    Tokens are the bits and the separator 2. The answer is as long as the
    input. At lengths 1 and 2 there is a single number, which is multiplied by
    zero: the answer is only the termination token at length 1, and 0 and the
    termination token at length 2.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 3
    output_vocabulary_size: int = 3
    level: str = "context_sensitive"
    random_accuracy: float = 0.5

    def output_length(self, length):
        """One output for each input token."""
        return length

    def combine(self, first, second):
        """Multiplies the numbers."""
        return multiply(first, second)
