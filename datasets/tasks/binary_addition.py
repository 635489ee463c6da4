"""Binary addition: the sum of two numbers, lowest bit first.

An example of length 9, which adds 4 and 22:

    inputs   0 0 1 2 0 1 1 0 1
    targets  0 1 0 1 1 2 0 0 0 0
"""

import dataclasses

from datasets.tasks.binary_numbers import add
from datasets.tasks.binary_operation import BinaryOperation


@dataclasses.dataclass(frozen=True)
class BinaryAddition(BinaryOperation):
    """The sum of two binary numbers, a termination token, and zeros.

    Tokens are the bits and the separator 2. The answer has one token more than
    the input. At lengths 1 and 2 there is a single number, and the answer is
    this number.

    This is also the addition of the suite of C-RASP (Huang et al., 2025,
    https://arxiv.org/abs/2410.02140), which writes the highest bit first. No
    program of C-RASP adds numbers in this order, so Transformers are predicted
    to fail. Published exact match at lengths 51 to 100 and 101 to 150, after
    training up to 50: 0.27 and 0.00 with 12 layers and a table of positions.

    Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
    """

    input_vocabulary_size: int = 3
    output_vocabulary_size: int = 3
    level: str = "context_sensitive"
    random_accuracy: float = 0.5

    def output_length(self, length):
        """Input length plus one, for the termination token."""
        return length + 1

    def combine(self, first, second):
        """Adds the numbers."""
        return add(first, second)
