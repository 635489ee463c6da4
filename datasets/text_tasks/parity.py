"""Parity: whether the number of ones is even.

For example:

    Is the number of 1's even in the sequence [ 1, 0, 1 ] ? The answer is Yes.
"""

import dataclasses

from datasets.text_tasks.base import Step, Template, TextTask


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parity(TextTask):
    """Whether the number of ones among bits is even; the length counts bits.

    Reference: Kazemnejad et al., 2023, section 3 and appendix D.1.
    https://arxiv.org/abs/2305.19466
    """

    templates = {
        "code": Template(
            "Is the number of 1's even in the sequence [ {bits} ] ? ",
            "",
            "The answer is {answer}.",
            ", ",
        ),
        "paper": Template(
            "Is the number of 1's even in [ {bits} ] ? ",
            "",
            "The answer is {answer}.",
            " ",
        ),
    }
    symbols = ("0", "1", ",", "Yes", "No")
    step_words = "[ ] , ** = par :"
    ignores_case = True
    trained_lengths = range(3, 9)
    tested_lengths = range(9, 17)

    def draw(self, rng, place, number):
        """Draws uniform bits."""
        return tuple(rng.integers(0, 2, *place).tolist())

    def longest(self, place):
        """Returns zeros: all problems of a length have equally many words."""
        return (0,) * place[0]

    def fill(self, problem):
        """Writes the bits and the answer."""
        return {
            "bits": self._write(problem),
            "answer": "No" if sum(problem) % 2 else "Yes",
        }

    def read_value(self, words):
        """Reads yes or no."""
        return words[0] if words in (["yes"], ["no"]) else None

    def steps(self, problem):
        """Keeps the parity of the bits so far."""
        parity = 0
        for number, bit in enumerate(problem):
            new = parity ^ bit
            yield Step(
                input=str(bit),
                computation=f"{bit} ** par = {bit} ** {parity}",
                output=str(new),
                variable=f"par: {new}",
                remaining=f"[ {self._write(problem[number + 1 :])} ]",
            )
            parity = new

    def _write(self, bits):
        return self.wording.between.join(map(str, bits))
